"""Review studies: made, read by several, checked, and told.

`session` joins: one person at work in one study. `make_study` freezes a study, `check_study` says
where it stands and what is wrong with it, `compare` where readings disagree, `consensus` makes one
mask of several.
"""
