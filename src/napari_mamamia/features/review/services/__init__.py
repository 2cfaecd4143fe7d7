"""Plan, read, check and report review studies.

`session` carries out one person's steps in a study. `make_study` freezes a study, `check_study`
reports its state and problems, `compare` finds disagreement, and `consensus` derives one mask from
several.
"""
