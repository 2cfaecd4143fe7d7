"""Scoring of classifiers: operating points, comparisons of models and with a reader."""
