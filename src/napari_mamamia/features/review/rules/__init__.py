"""Rules of a review study: assignment, states from events, signatures and agreement.

`replay` turns the events of a study into the state of every case, by the table of steps in
`states`. Nothing here reads a clock, a file or a private key.
"""
