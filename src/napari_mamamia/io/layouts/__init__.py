"""Layouts as data: patterns of paths say which file is which phase and mask of which exam."""
