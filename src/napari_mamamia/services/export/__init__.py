"""Export masks, tables, SEG and layouts as a bundle, and verify it.

`export` runs an export. `plan` checks the settings first, `writer` writes each case completely or
not at all, and `formats` and its modules write the formats. `verify` checks a bundle against its
manifest, and `privacy` searches it for data of the patient.
"""
