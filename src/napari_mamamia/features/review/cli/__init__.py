"""Commands of `mamamia review`: a study that several people read in one shared folder.

`commands` registers all commands; `keys` and `quality` define the commands of their subject.
"""
