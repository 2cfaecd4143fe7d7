"""Prediction of one or many cases by one or several models; conversion of models."""
