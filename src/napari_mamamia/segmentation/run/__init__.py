"""Find, plan, load and run models.

`weights` describes a model on disk without executing anything. `registry` lists the added models.
`engines` loads models of any kind. `trained` makes a model a `Segmenter`. `planned` applies limits
of time and memory, using the measured `paces`. `engine_host` keeps a model loaded, in this process
or in the worker process.
"""
