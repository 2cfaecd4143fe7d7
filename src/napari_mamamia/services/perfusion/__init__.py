"""`mamamia perfusion`: Ktrans, ve, vp and kep of a data set's cases, where their phases carry it.

`settings` (what is asked), `inputs` (each case's files), `t1_source` (T1 typed, mapped or of flip
angles), `fit_case` (one case), `row` (its row), `fit_cases` (the batch and what it writes).
"""
