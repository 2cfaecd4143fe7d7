"""Export masks, tables, SEG and layouts as a bundle, and verify it.

`export` is the whole job: `plan` refuses impossible settings early, `export_case` writes a case
completely or not at all through `writer`, `formats` and its modules write each format. `verify`
checks a bundle against its manifest, `privacy` searches it for data of the patient.
"""
