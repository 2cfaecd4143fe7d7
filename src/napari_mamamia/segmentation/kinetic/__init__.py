"""The default without training: breast, search, candidates, judgement, outline.

`kinetic` joins it: `breast` says where to look, `search` what enhances there, `candidates` measures
regions, `judgement` scores and doubts them in words, `ranking` orders and draws. Its knobs are in
`kinetic_settings`.
"""
