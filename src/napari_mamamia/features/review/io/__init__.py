"""Files of a review study: study file, events, masks named by hash, claims and keys.

::

    STUDY/study.json                      frozen; its SHA-256 is the first hash of every chain
    STUDY/events/READER/HOST-SESSION.jsonl
    STUDY/masks/SHA256.nii.gz             written once
    STUDY/claims/CASE.ROUND.WHO.N         created exclusively

The folder may be on a network share that stops responding. Therefore `share` runs all access as
`background_tasks`. `store` defines the interface and implements it for a folder; `schema.sql` is
the equivalent for PostgreSQL. Nothing relies on file locks.
"""
