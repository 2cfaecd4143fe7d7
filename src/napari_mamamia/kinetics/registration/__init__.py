"""Registration of phases onto one reference phase, applied only where it improves the fit.

`registration` is the entry point; `search` optimises (rigid, B-spline), `tries` computes the effect
of each warp on a phase, `quality` measures (residual, NMI, Jacobian), `motion` chooses. `itk` is
the only module that imports SimpleITK.
"""
