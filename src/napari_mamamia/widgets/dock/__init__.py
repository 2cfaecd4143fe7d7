"""The only dock of a viewer, which refers to the viewer and connects pages, drops and tools."""
