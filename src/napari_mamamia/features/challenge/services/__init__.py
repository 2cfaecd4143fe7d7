"""Challenges in a folder, rankings, and runs of submissions."""
