"""Import of DICOM studies: inspect, ask, write.

`finding` judges studies, `dicom` writes one, `studies` several, `record` their metadata;
`inspection`, `preview` and `check` serve the window, `remedies` applies what a user chose.
"""
