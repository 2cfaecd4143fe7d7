"""The image area of napari: the open case, planes, overlays, prompts and drawings."""
