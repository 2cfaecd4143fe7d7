"""Classifiers: operating points, comparisons of models and a reader, stacks, leaks, splits."""
