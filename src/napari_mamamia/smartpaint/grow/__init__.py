"""Growth of an outline, click, box or candidate in 3-D by a convex cut."""
