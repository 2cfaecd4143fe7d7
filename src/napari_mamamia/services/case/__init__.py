"""Open a data set and a case, prepare their display, and find and save masks.

`context` records the data set, the case and the reader at the start of the work. Every read and
write uses this context, never a case id alone.
"""
