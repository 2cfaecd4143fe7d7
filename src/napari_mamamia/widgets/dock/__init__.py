"""The only dock of a viewer: it holds the viewer and connects pages, drops and tools."""
