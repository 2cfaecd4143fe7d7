"""The image area of napari: open case, planes, overlays, prompts and drawings."""
