"""Plan, read, check and report review studies.

`plan_study` drafts and freezes a study. `session` carries out one person's steps in a study, and
`client` makes them available to the window. `check_study` reports the state and problems of a
study. `compare` finds disagreements between readings, and derives one mask from several.
"""
