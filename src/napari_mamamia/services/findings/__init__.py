"""Findings of a case without a study: a reader's answers and landmarks.

`case_findings` loads, fills in and saves them for the window; `findings_table` makes a table of the
findings of a data set.
"""
