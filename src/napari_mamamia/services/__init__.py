"""The use cases: each package reads files, runs the computation and reports progress."""
