"""Score one case from two masks and a profile, with warnings and failure kinds.

`profiles` holds the named definitions (which Hausdorff distance, which unit, which policy for empty
masks).
"""
