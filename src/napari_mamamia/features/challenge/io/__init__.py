"""The files in a challenge folder: its definition, submissions and ledger of attempts.

Submissions are untrusted: links are not followed, names cannot leave the folder, sizes are limited,
and this package runs no code from a submission.
"""
