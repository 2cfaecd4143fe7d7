"""Masks from several sources: one label set, one grid, one naming."""
