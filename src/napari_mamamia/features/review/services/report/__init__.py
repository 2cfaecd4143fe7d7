"""A study as one page to print."""
