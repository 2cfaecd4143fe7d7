"""Page Refine: the mouse's tools, strokes, outlines, growing, the mask and its saving."""
