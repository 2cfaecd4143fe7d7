"""Rank algorithms from their score tables, and write tables and pages.

`inputs` reads the tables, `rank` ranks the algorithms and writes the files, and `output` defines
the content of these files.
"""
