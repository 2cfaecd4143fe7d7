"""Rank several algorithms from tables of their scores, and write tables and pages.

`inputs` reads the tables, `rank` ranks and writes, `output` defines the content of the files.
"""
