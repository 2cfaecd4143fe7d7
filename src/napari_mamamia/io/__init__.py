"""Convert files to domain types and back; the only package that opens the user's data files."""
