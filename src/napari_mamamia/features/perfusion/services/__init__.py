"""`mamamia perfusion`: fit Ktrans, ve, vp and kep for cases whose phases allow the fit.

`settings` holds the settings, `fit_case` fits one case, and `row` defines its row. `fit_cases`
reads T1, runs the batch and writes the results.
"""
