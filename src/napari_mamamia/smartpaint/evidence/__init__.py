"""Strokes as lasting evidence: marks of each voxel, what a stroke may change, and what it does."""
