"""What napari keeps private: the one place that touches it, each use guarded, with a fallback.

`drawing` is how and when napari draws, `stepping` what a slice step does, `writing` what stands on it.
"""
