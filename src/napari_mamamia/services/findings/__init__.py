"""A reader's answers and landmarks for a case, outside a review study.

`case_findings` loads, fills in and saves findings for the window; `findings_table` makes a table of
a data set's findings.
"""
