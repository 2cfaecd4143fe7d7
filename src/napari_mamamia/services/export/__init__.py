"""Export masks, tables and DICOM SEG in several layouts as a bundle, and verify the bundle.

`export` runs an export. `plan` checks the settings first, `format_spec` writes each case completely
or not at all, and `formats` and its modules write the formats. `verify` checks a bundle against its
manifest, and `privacy` searches the bundle for patient data.
"""
