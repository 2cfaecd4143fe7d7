"""The spellings of patient identifiers, and a search for them in every byte of a file.

`io.dicom.persons` and `io.dicom.volume_persons` collect the identifiers.
"""
