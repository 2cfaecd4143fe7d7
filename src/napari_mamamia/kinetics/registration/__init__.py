"""Moving phases onto one, judged, only where it helps.

`registration` joins it; `search` moves (rigid, B-spline), `tries` says what each does to a phase,
`quality` measures (residual, NMI, Jacobian), `motion` chooses, `registration` makes the phase.
`itk` is the one module that imports SimpleITK.
"""
