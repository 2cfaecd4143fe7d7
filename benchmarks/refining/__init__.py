"""What `benchmarks/refine.py` is made of: scenes, phantoms, exams, starts, robot, tools, limits.

A folder, because each file directly in `benchmarks` is a benchmark that `make bench` runs.
"""
