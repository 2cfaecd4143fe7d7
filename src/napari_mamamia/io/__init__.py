"""Convert files to domain types and back; no other package opens the user's data files."""
