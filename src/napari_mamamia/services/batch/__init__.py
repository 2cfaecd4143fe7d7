"""Work on many cases, defined once and run in this process, in workers or on a cluster.

`work` is a case's inputs and rows, `store` keeps what is done, `child` is a case that can be
killed, `cluster` is dask. `output_folder` never mixes results of two runs;
`beside` runs what would hold the interpreter's lock in a process of its own.
"""
