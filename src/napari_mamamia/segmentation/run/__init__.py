"""A model chosen, planned, kept loaded and run.

`weights` says what a model on the disk is, executing nothing; `registry` holds those that were
added; `engines` loads any kind; `trained` is it behind the `Segmenter` protocol; `planned` keeps to
time and memory with remembered `paces`; `engine_host` keeps it loaded, here or in the worker.
"""
