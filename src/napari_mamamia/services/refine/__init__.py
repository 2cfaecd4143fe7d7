"""Editing: a mask opened, strokes and whole-mask tools, its journal played again."""
