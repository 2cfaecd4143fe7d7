"""Scoring of one case from two masks and a profile, with warnings and failure kinds.

`profiles` contains the named sets of definitions (Hausdorff distance, unit, empty masks).
"""
