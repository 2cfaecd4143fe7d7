"""What tells a person: identifiers, how they show in a text, the search in every byte.

Where they come from: `io.dicom.persons` and `io.dicom.volume_persons`.
"""
