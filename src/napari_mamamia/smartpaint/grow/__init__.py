"""An outline, click, box or candidate grown in 3-D by a convex cut."""
