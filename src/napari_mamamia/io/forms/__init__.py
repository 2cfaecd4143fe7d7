"""Forms as JSON: shipped lexicons in versions, and a study's own questions.

`breast-mri-2013.json` holds only terms and codes, no definitions; `docs/methods/forms.md` lists the
source of each. Only `form_file` reads these files.
"""
