"""One module per thing a user can ask for; joins io and science; reports progress."""
