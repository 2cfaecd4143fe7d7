"""A data set on the disk: its layout, cases, phases and masks.

`volumes` is the one door to volume files. `layout` recognises the conventions (MAMA-MIA, nnU-Net
raw, one case, one file, DICOM) and fills `io.files.sources` (`phase_files`,
`patient_info`). `imported_case` is a case that appears whole or not. `bundle`, `label_map`,
`moved_info` and `export_layouts` are the files of an export; `challenge_info` is what a submission
may know of a patient.
"""
