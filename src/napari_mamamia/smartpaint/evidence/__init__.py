"""Strokes as lasting evidence: the marks of each voxel, and the limits and effect of a stroke."""
