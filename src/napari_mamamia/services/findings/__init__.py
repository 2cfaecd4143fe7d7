"""Findings of a case without a study: the form's answers and landmarks of a reader, kept and told.

`case_findings` opens, fills in and keeps them for the window; `findings_table` makes rows of a data
set for people who compute with them.
"""
