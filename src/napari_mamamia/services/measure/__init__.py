"""What a reader draws on a case to measure it: from places to shapes, kept, and in numbers."""
