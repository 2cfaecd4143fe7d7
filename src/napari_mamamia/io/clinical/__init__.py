"""Read clinical tables written by other software as a cohort.

`clinical` reads a whole table, `columns` finds the column of each field, `overview` summarises the
columns for the user, `rows` reads one row and reports every bad cell, and `rules` contains the
cleaning rules.
"""
