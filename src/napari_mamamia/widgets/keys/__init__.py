"""User-defined shortcuts, and the table for changing them."""
