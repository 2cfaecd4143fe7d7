"""The default segmenter, which needs no training: breast, search, candidates, score, outline.

`kinetic` is the entry point: `breast` finds the breast, `search` the enhancement in it,
`candidates` measures regions, `judgement` scores them and explains the scores, `ranking` orders and
outlines them. Its parameters are in `kinetic_settings`.
"""
