"""All uses of napari's private attributes; each is guarded and has a fallback.

`drawing` schedules drawing, `outlines` draws masks as lines, `stepping` speeds up slice steps,
`sliders` changes the sliders below the canvas, and `writing` draws the text on the canvas.
"""
