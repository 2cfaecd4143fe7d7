"""Run untrusted programs in a sandbox.

`external` inspects a submission folder, and `isolation` tests which sandboxes this computer
supports. `sandbox` prepares the files, and `run` executes `runner` in the sandbox and supervises
it. `watch` lists the resources of a program and how each is limited: `seccomp` denies system calls,
`watch` counts resources, and `cgroup` lets the kernel count them. `pipes` reads the program's
output, and `outputs` checks its masks before they are used.
"""
