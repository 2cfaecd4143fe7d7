"""Perfusion: T1, concentration, arterial input, Tofts fits, and the exams that allow them.

One module performs each of the four steps from the stored signal to Ktrans: `t1_map` (T1 from flip
angles), `spoiled_echo` (signal to concentration), `arterial_input` (plasma in an artery) and `fit`
(tissue uptake, and the parameters of each voxel). `gate` checks whether an exam allows these steps.
Times are minutes since the arrival of contrast, rates 1/min, and concentrations mM.
"""
