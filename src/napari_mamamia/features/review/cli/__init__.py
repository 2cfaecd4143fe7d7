"""Commands of `mamamia review`, which runs a reader study in one shared folder.

`commands` registers all commands. `keys` defines the commands for signing keys, and `quality` the
commands for quality control.
"""
