"""Score one case from two masks and a profile, with warnings and failure kinds.

`profiles` contains the named definitions (Hausdorff distance, unit, treatment of empty masks).
"""
