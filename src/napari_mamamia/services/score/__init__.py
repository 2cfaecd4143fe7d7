"""Score folders, models and tables, and prepare the results for the window.

`score` scores the cases (each mask is read once) and finds failure kinds (`inspections`); `models`
compares models; `table` and `pcr` take results from elsewhere; `output` and `report` write.
"""
