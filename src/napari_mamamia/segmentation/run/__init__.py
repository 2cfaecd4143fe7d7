"""Choice, planning, loading and running of models.

`weights` describes a model on the disk without executing anything; `registry` holds the added
models; `engines` loads any kind; `trained` wraps a model in the `Segmenter` protocol; `planned`
keeps limits of time and memory with the measured `paces`; `engine_host` keeps a model loaded, in
this process or in the worker.
"""
