"""Import DICOM studies: inspect them, apply the user's choices, and write cases.

`finding` checks studies, `dicom` writes one study, `studies` writes several, `record` writes their
metadata. `inspection`, `preview` and `check` are for the window; `remedies` applies the remedy that
a user chose.
"""
