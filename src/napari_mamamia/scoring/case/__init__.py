"""One case: two masks and a profile to a score, its warnings, and why it failed.

`profiles` are the named definitions (which Hausdorff, which unit, which policy for empty masks).
"""
