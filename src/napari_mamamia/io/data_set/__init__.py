"""A data set on disk: its layout, cases, phases and masks.

`volumes` reads and writes all volume files. `layout` recognises the conventions (MAMA-MIA, nnU-Net
raw, one case, one file, DICOM) and fills `io.files.sources` (`phase_files`, `patient_info`).
`imported_case` writes a case completely or not at all. `bundle`, `label_map`, `moved_info` and
`export_layouts` are the files of an export; `challenge_info` selects the facts about a patient that
a submission may know.
"""
