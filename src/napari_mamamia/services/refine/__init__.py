"""Editing: a mask opened, strokes and whole-mask tools, and replay of its journal."""
