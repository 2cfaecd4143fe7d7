"""The napari and Qt code: one dock widget with pages. It computes nothing and accesses no files."""
