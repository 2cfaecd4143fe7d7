"""Open a data set and a case, show them, find and save masks.

`context` holds data set, case and reader as they were when work began: every read and write uses
it, never an id alone.
"""
