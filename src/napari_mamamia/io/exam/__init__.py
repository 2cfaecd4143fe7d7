"""Roles before phases: from a study's images to the phases of one exam, or a question.

`exam.find_exam` joins it: parts (`io.dicom.parts`) as the user chose them (`selectors`, `choice`),
one acquisition with each moment once (`acquisitions`, `runs`), dates, time zones and midnight
(`days`), what pixels say (`looks`, `blanks`; `noise`: was it measured by itself; `copies`: is it
there twice), what contradicts that they are phases (`doubts`), what is missing (`losses`), two
breasts on one grid (`sides`), times (`timing`); `questions` words what is asked, `table` says role,
evidence and use of every part. `phases` is the door for all others: folder to phases. A new rule
is a role there and a protocol in tests/dicom_protocols.py or dicom_hostile.py, never a guess: what
is not certain is refused with the selectors that decide.
"""
