"""What of this folder is no test."""

collect_ignore = ["windows"]
