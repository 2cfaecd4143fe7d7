"""MONAI bundles, read as data: `@` references are followed, `$` expressions never evaluated.

`engine` is the entry point; `allowed` lists the classes that may be used, `card` describes a bundle
without MONAI, `windows` is its sliding window. `in_sandbox` runs a refused bundle in a sandbox.
"""
