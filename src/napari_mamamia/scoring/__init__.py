"""From masks to case scores under a named profile."""
