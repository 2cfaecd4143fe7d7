"""Import of DICOM studies: looked at, asked, written.

`finding` judges, `dicom` writes one study, `studies` several, `record` what is kept with it,
`enhancement` shows pre and post; `look`, `preview` and `check` serve the window.
"""
