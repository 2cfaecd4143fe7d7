"""Prompts as steps of an editing session."""
