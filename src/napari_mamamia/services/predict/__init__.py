"""Prediction of one case and of many, by one model or several; saving; conversion of models."""
