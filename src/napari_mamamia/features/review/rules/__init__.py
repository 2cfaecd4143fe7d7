"""Rules of a review study: assignment, states, signatures and reader agreement.

`replay` computes the state of every case from the events of a study, using the table of steps in
`states`. The modules of this package read no clock, file or private key.
"""
