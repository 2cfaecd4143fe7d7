"""`mamamia perfusion`: Ktrans, ve, vp and kep of a data set's cases, where their phases carry it.

`settings` (what is asked), `inputs` (each case's files), `fit_case` (one case), `row` (its row),
`fit_cases` (T1, the batch and what it writes).
"""
