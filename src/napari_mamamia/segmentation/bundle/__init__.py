"""MONAI bundles read as data: `@` references are resolved, `$` expressions are not evaluated.

`engine` is the entry point and has the sliding window. `allowed` lists the classes that may be
used, and `card` describes a bundle without MONAI. `in_sandbox` runs a bundle that is not allowed
here in a sandbox.
"""
