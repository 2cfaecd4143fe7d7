"""Prompt engines and their processes."""
