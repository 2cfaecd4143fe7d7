"""The commands of classifiers and lesion detection."""
