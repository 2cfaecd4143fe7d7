"""Combine masks from several sources: labels, grids, names."""
