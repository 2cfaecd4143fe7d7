"""A foreign program in a closed room.

`external` says what a submission folder is; `isolation` tries what this computer has; `room` lays
out the files and `run` runs `runner` in it, guarded. `resources` lists what it may hold and how
each kind is kept within `limits`: `seccomp` denies, `watch` and `held` count, `cgroup` lets the
system count. `pipes` reads what it prints; `outputs` and `table` check what came out before it is
used.
"""
