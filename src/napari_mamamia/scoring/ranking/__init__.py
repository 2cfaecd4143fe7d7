"""Algorithms ranked by their values of cases: methods side by side, how stable, and over sites.

Pure: arrays and records (`table`), ranks (`methods`, `signed_rank`), resamples (`draws`,
`stability`), all of it for one table and several (`ranking`). `features/challenge` joins it with
files and sites. Each copy of a case that is drawn is a case of its own.
"""
