"""Formulas of one subject each: performance, AUC, calibration, bootstrap."""
