"""Create, run, rank and verify a challenge in a folder; evaluate and merge sites.

The file format of a challenge is in `challenge_file`. Every attempt is recorded in the ledger
before it is scored, and only sealed copies are scored.
"""
