"""The Score page: scores of the open case, agreement map, errors and tags."""
