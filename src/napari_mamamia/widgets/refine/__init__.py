"""The Refine page: mouse tools, strokes, outlines, growing, and saving the mask."""
