"""Score folders of masks, several models and tables, and prepare the results for the window.

`score` scores the cases and determines failure kinds (`inspections`); each mask is read once.
`models` compares models, `table` and `pcr` read external results, and `output` and `report` write
the results.
"""
