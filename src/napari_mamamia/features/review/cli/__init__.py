"""Commands of `mamamia review`: a study that several people read in one shared folder.

`commands` registers all commands; `keys` and `quality` define those of their subject.
"""
