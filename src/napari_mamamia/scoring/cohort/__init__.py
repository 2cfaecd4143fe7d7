"""Many cases: groups, fairness, comparison, ranking, worst subgroups; as records in `results`.

`segmentation_cohort` and `response_cohort` are everything about one model.
"""
