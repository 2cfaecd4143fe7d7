"""The files of a challenge folder: its definition, submissions and ledger of attempts.

Submissions are untrusted: links are not followed, names cannot leave the folder, sizes are limited,
and no code of a submission is run here.
"""
