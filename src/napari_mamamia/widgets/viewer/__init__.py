"""napari's image area: the open case, planes, overlays, prompts and drawings."""
