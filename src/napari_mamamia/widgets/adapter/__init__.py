"""What napari keeps private: the one place that touches it, each use guarded, with a fallback.

`drawing` is how and when napari draws, `outlines` masks as lines, `stepping` a slice step,
`sliders` what stands below the canvas, `writing` what stands on it.
"""
