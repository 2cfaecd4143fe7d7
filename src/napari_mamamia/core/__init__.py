"""Domain types and words: numpy and the standard library only."""
