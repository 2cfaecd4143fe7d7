"""Challenges in folders, rankings, and runs of submissions."""
