"""Growth of a region in 3-D from an outline, click, box or candidate, by a convex minimum cut."""
