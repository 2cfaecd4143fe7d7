"""The records of a review study and of its quality checks."""
