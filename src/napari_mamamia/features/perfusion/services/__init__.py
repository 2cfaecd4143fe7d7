"""`mamamia perfusion`: Ktrans, ve, vp and kep of a data set's cases whose phases allow it.

`settings` holds the settings, `inputs` each case's files, `fit_case` fits one case, `row` is its
row, `fit_cases` reads T1, runs the batch and writes the results.
"""
