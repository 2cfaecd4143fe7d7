"""Page Score: numbers of the open case, agreement, errors, tags."""
