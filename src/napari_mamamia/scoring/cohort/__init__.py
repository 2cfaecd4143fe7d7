"""Metrics over many cases: groups, fairness, comparison, ranking, worst subgroups.

`results` contains the result records; `segmentation_cohort` and `response_cohort` compute all
metrics of one model.
"""
