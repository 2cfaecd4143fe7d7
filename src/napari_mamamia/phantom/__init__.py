"""Procedural breast DCE-MRI cases with known truth."""
