"""The one dock of a viewer: it alone holds the viewer and joins pages, drops and tools."""
