"""Strokes as lasting evidence: marks of each voxel, limits of a stroke, and its effect."""
