"""Numbers over many cases: groups, fairness, comparison, ranking, worst subgroups.

`results` holds the records; `segmentation_cohort` and `response_cohort` hold all numbers of one
model.
"""
