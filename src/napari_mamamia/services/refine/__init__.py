"""Editing: opening a mask, strokes and whole-mask tools, and replay of the journal."""
