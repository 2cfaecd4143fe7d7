"""Process many cases in this process, in worker processes or on a cluster.

`work` defines the inputs and results of a case and stores finished cases. `child` is a process that
can be killed. `local_workers` uses several such processes, and `cluster` uses dask. `output_folder`
prevents the results of two runs from being mixed. `in_subprocess` runs work that would hold the
interpreter's lock.
"""
