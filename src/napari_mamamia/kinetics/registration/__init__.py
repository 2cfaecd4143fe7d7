"""Register phases onto a reference phase, and apply the result only if the fit improves.

`registration` is the entry point, which optimises (rigid, B-spline) and chooses the best warp.
`quality` measures the fit (residual, NMI, Jacobian). `itk` is the only module that imports
SimpleITK.
"""
