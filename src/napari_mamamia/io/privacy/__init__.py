"""Patient identifiers: how they appear in text, and the search for them in every byte of a file.

They come from `io.dicom.persons` and `io.dicom.volume_persons`.
"""
