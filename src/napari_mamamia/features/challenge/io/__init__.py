"""A challenge as a folder: what is frozen, what was handed in, the ledger of attempts.

`features/challenge/services/challenge` joins it. What was handed in is foreign: no link is
followed, no name leads out of its folder, sizes have limits, and nothing of it is run here.
"""
