"""Services of `mamamia perfusion`, which fits Ktrans, ve, kep and vp.

`settings` defines the settings, and `row` the table row of a case. `fit_cases` fits cases, reads
T1, runs the batch and writes the results.
"""
