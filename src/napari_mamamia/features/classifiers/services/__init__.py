"""Services behind the commands for classifiers and lesion detection."""
