"""Strokes as lasting evidence: the marks that they leave in voxels, their limits and effects."""
