"""Prediction of one or many cases with one or several models, and conversion of models."""
