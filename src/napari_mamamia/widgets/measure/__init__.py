"""Measurements on the image: rulers and other shapes, drawn with the mouse, listed and saved."""
