"""Import DICOM studies: inspect them, apply the user's choices, and write cases.

`finding` checks studies, and `dicom` writes them with their metadata. `inspection`, `preview` and
`check` serve the window. `remedies` applies the remedy that a user chose.
"""
