"""A review study's own rules, without files: who reads what, states from events, what is signed.

`fold` joins: events in, the state of every case out, by the table of steps in `states`. Nothing
here reads a clock, a file or a key.
"""
