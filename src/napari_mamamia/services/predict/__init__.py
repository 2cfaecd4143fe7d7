"""Prediction of a case and of many, by a model or several; what is kept; models converted."""
