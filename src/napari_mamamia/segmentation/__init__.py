"""Segmenters: from a case to a prediction."""
