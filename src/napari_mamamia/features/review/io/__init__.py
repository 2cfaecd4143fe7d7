"""A review study on the disk: its frozen file, events, masks by their hash, claims, keys.

::

    STUDY/study.json                      frozen; its SHA-256 is what every chain begins with
    STUDY/events/READER/HOST-SESSION.jsonl
    STUDY/masks/SHA256.nii.gz             written once
    STUDY/claims/CASE.ROUND.WHO.N         made by exclusive creation

`share` is the one door to the folder, whose share may hang; `errands` is what is done there.
`store` is the interface and its folder; `schema.sql` the same for PostgreSQL. No lock is relied on.
"""
