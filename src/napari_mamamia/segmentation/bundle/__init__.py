"""Run MONAI bundles without running their code: `$` expressions are not evaluated.

Bundle files are read as data, and `@` references are resolved. `engine` is the entry point and has
the sliding window. `allowed` lists the classes that may be used, and `card` describes a bundle
without MONAI. `in_sandbox` is a program that runs other bundles in a sandbox.
"""
