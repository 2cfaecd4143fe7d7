"""One data set and one case: opened, shown, its mask found and saved.

`context` is data set, case and reader as work began: every read and write goes by it, never by an
id alone.
"""
