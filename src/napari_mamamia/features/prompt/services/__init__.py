"""Services that turn prompts into steps of an editing session."""
