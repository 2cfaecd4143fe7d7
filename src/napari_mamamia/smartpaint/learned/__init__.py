"""A small network that has learned to correct a mask: its input, its arithmetic, its weights."""
