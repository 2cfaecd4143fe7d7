"""Forms stored as JSON: the shipped lexicons, and the questions of a study.

`breast-mri-2013.json` contains only terms and codes, without definitions; `docs/methods/forms.md`
lists their sources. Only `form_file` reads these files.
"""
