"""Classifiers: operating points, models against models and a reader, stacks, leaks, splits."""
