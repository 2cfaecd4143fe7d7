"""Segmenters: they make a prediction from a case."""
