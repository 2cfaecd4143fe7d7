"""Clinical tables that are not ours, to a cohort.

`clinical` joins it: which column is which field (`columns`; `overview` holds what a user confirms,
`overview` what is shown of it), a row or every cell at fault (`rows`), each cleaning rule by name
(`rules`).
"""
