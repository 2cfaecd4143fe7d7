"""Audits, splits and stacking of classifiers, and scores for lesion detection."""
