"""Scoring of classifiers: operating points, comparisons of models, comparison with a reader."""
