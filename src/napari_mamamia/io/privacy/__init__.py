"""Patient identifiers: their forms in text, and a search for them in every byte of a file.

They come from `io.dicom.persons` and `io.dicom.volume_persons`.
"""
