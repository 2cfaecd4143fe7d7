"""Data classes of a review study and of its quality control."""
