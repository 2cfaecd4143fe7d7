"""Work on many cases, defined once and run in this process, in workers or on a cluster.

`work` defines a case's inputs and results, `store` keeps finished cases, `child` is a process that
can be killed, `cluster` is dask. `output_folder` never mixes results of two runs; `in_subprocess`
runs work that would block the interpreter's lock.
"""
