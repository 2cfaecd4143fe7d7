"""Find the phases of one DCE exam among the images of a DICOM study.

`exam.find_exam` is the main function. It takes the parts (`io.dicom.parts`) that the user chose
(`selectors`, `choice`), one acquisition with each time once (`acquisitions`, `runs`), and aligns
dates, time zones and midnight (`days`). Pixels are compared in `looks`, `blanks`, `noise` (was each
phase measured by itself) and `copies` (is an image there twice); `inconsistencies` lists what
contradicts a dynamic, `losses` what is missing. `sides` joins two breasts on one grid, `timing`
reads further times, `questions` words the questions, `table` gives role, evidence and use of every
part. `phases` opens a folder for all other modules. A new rule is a role there and a protocol in
tests/dicom_protocols.py or dicom_hostile.py. Nothing is guessed: what is uncertain is refused, with
the selectors that decide it as remedies.
"""
