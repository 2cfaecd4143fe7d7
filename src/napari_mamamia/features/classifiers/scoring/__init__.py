"""Audits, splits and stacking of classifiers; scores of lesion detection."""
