"""The user's own keys, and the table in which they are changed."""
