"""The single dock of a viewer, which connects pages, file drops and tools."""
