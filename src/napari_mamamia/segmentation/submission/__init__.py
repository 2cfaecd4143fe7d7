"""A foreign program in a closed room.

`external` says what a submission folder is; `isolation` tries what this computer has; `room` lays
out the files and `run` runs `runner` in it, guarded; `watch`, `limits`, `pipes`, `seccomp` and
`cgroup` hold it and end all it started; `outputs` and `table` check what came out before it is
used.
"""
