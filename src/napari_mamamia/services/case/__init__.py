"""Open a data set and a case, prepare their display, and find and save masks.

`context` holds data set, case and reader as they were when work began. Every read and write uses
this context, never a case id alone.
"""
