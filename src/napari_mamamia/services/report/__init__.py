"""A report of each case: one page, PDF, DICOM SR and key objects, and a table over all cases.

`reading` gathers what is known of a case, `case_page` shows it, `printing` makes the
PDF, `structured` the DICOM objects; `report` does it for many cases and writes the table.
"""
