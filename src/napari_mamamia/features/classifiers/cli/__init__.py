"""The commands for classifiers and lesion detection."""
