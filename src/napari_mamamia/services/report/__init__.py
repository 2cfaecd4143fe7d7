"""Case reports: a page per case, PDF, DICOM SR and key objects, and a table of all cases.

`reading` collects the data of a case, `case_page` creates the page, `printing` the PDF and
`structured` the DICOM objects. `report` does this for many cases and writes the table.
"""
