"""Score lesion detection from tables of boxes or folders of masks."""
