"""A challenge in a folder: begun, run, ranked, proved; and sites that evaluate at home.

What a challenge is stands in `io.challenge.challenge_file`. Nothing is scored that is not noted in
the ledger first, and everything that is scored is a sealed copy.
"""
