"""Perfusion: T1, concentration, arterial input, Tofts fits, and the requirements on exams.

From the signal of the files to Ktrans in four steps, one module each: `t1_map` (T1 from flip
angles), `spoiled_echo` (signal to concentration), `arterial_input` (plasma in an artery), `fit`
(tissue uptake, and the parameters of each voxel); `gate` checks whether an exam allows them. Times
here are minutes since the arrival of contrast, rates 1/min, concentrations mM.
"""
