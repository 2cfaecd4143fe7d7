"""Page Refine: mouse tools, strokes, outlines, growing, the mask and its saving."""
