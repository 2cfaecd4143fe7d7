"""Files to domain types and back. The only room that opens the user's data files."""
