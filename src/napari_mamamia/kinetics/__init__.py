"""Kinetics: contrast-curve maps, classes and the choice of phases, on plain arrays.

`time_axis` says on which named clock phases stand, `timing` which are early and late, `arrival` and
`bolus` where contrast came. A map is a formula (`map_formulas`) and an entry with its recipe,
ranges, colours and words (`map_kinds`); `maps` and `map_blocks` fill it. `curves`, `curve_types`
and `contrast_curve` are the curve of a region, `lesion` one lesion, `tumour_volume` FTV in UCSF's
form, `ultrafast` slope and arrival in close phases, `background` the other breast.
"""
