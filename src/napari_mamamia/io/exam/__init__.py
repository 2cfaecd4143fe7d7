"""Find the phases of one DCE exam among the images of a DICOM study.

`exam.find_exam` is the main function. It takes the parts (`io.dicom.parts`) that the user chose
(`selectors`, `choice`), groups them into acquisitions that contain each time once (`acquisitions`,
`runs`), and aligns dates, time zones and midnight (`days`). Pixels are compared in `looks`, `noise`
(whether each phase was measured) and `copies` (whether an image occurs twice). `inconsistencies`
finds evidence against a dynamic series and missing images. `sides` joins the stacks of two breasts
on one grid. `table` lists the role, evidence and use of every part. All other modules open a folder
through `phases`. A new rule needs a role and a protocol in tests/dicom_protocols.py or
tests/dicom_hostile.py. Nothing is guessed: uncertainty raises an error whose remedies are
selectors.
"""
