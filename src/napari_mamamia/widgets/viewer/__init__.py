"""Napari's image area: the open case in it, planes, overlays, prompts, what is drawn on it."""
