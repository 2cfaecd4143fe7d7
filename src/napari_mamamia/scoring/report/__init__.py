"""Results to figures and one HTML page."""
