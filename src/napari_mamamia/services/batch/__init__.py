"""Process many cases in this process, in worker processes or on a cluster.

`work` defines a case's inputs and results, `store` keeps finished cases, `child` is a process that
can be killed, `cluster` is dask. `output_folder` never mixes results of two runs; `in_subprocess`
runs work that would hold the interpreter's lock.
"""
