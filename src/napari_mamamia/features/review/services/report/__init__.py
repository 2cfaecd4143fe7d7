"""A study's report, written as one HTML page."""
