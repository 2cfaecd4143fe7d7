"""`mamamia review`: a study that several people read on one shared folder.

`commands` gives every command its name; those of keys and of quality control have a module each.
"""
