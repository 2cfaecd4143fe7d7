"""The files of a challenge folder: its definition, submissions and ledger of attempts.

Submissions are untrusted: links are not followed, names cannot lead out of their folder, sizes are
limited, and nothing of a submission is run here.
"""
