"""Further commands of `mamamia review`: quality control, and the report of a study.

Their names are given in `cli.review`, which is the one module that joins them.
"""
