"""Find patient identifiers, in any spelling, in every byte of a file.

`io.dicom.persons` and `io.dicom.volume_persons` collect the identifiers.
"""
