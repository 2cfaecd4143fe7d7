"""Case reports: one page per case, PDF, DICOM SR and key objects, and a table over all cases.

`reading` collects the data of a case, `case_page` lays it out, `printing` makes the PDF,
`structured` the DICOM objects; `report` does it for many cases and writes the table.
"""
