"""Ranking of algorithms by case values, with several methods, rank stability, and multiple sites.

The package contains pure functions on arrays and records for the input (`table`), the ranks
(`methods`, `signed_rank`), and the resampling of one or several tables (`ranking`).
`features/challenge` reads and writes the files. In a resample, each copy of a case counts as a
separate case.
"""
