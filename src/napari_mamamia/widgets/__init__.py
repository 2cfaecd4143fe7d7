"""The napari and Qt code: one dock widget with pages.

These modules compute nothing and access no files.
"""
