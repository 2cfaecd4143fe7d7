"""Forms on the disk: lexicons as versioned data that is shipped, and a study's own questions.

`breast-mri-2013.json` holds terms and codes alone, no definitions: `docs/methods/forms.md` says
where each comes from. `form_file` is the one module that reads them.
"""
