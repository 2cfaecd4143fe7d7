"""Run an untrusted program in a sandbox.

`external` inspects a submission folder; `isolation` tests which sandboxes this computer offers;
`sandbox` lays out the files, and `run` runs `runner` in it under supervision. `resources` lists the
resources of a program and how each is kept within `limits`: `seccomp` denies system calls, `watch`
and `held` count, `cgroup` lets the kernel count. `pipes` reads the program's prints; `outputs`
checks its masks before use.
"""
