"""The default segmenter, which has no trained weights.

`kinetic` is the entry point. `breast` finds the breast, and `search` the enhancement in it.
`candidates` measures regions; `ranking` scores them, explains the scores, and outlines the best
regions. The parameters are in `kinetic_settings`.
"""
