"""Score classifiers and predicted responses from tables."""
