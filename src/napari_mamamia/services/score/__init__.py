"""Scoring of folders, models and tables; what the window shows of it.

`score` joins it over the cases (a case's mask is read once, `looks` says why it failed); `models`
compares; `table` and `pcr` take what somebody else made; `output` and `report` write.
"""
