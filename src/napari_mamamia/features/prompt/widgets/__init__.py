"""The Prompt page of the window."""
