"""Rank algorithms by their case values: several methods, stability of ranks, ranks over sites.

Pure functions on arrays and records: input (`table`), ranks (`methods`, `signed_rank`), resamples
(`draws`, `stability`), one or several tables (`ranking`). `features/challenge` reads and writes the
files. In a resample, each copy of a case counts as a case of its own.
"""
