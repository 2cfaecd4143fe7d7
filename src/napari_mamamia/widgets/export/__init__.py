"""Page Export."""
