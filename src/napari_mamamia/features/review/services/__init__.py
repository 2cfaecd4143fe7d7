"""Review studies: planning, reading by several people, checking and reporting.

`session` is one person's work in a study. `make_study` freezes a study, `check_study` reports its
state and problems, `compare` finds disagreement, `consensus` derives one mask from several.
"""
