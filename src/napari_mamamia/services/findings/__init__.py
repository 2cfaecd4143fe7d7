"""A reader's answers and landmarks for a case, outside a review study.

`case_findings` loads, completes and saves findings for the window. `findings_table` creates a table
of the findings in a data set.
"""
