"""Perfusion: T1, concentration, arterial input, Tofts fits, and which exams carry them.

From the files' signal to Ktrans in four steps, a module each: `t1_map` (T1 from flip angles),
`spoiled_echo` (signal to concentration), `arterial_input` (plasma in an artery), `fit` (what tissue
takes up, and the parameters of each voxel); `gate` says which exams carry it.
Times here are minutes since the contrast's arrival, rates 1/min, concentrations mM.
"""
