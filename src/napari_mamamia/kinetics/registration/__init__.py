"""Registration of phases onto a reference phase, applied only if the fit improves.

`registration` is the entry point, which optimises (rigid, B-spline) and chooses the best warp.
`quality` measures the fit (residual, NMI, Jacobian). `itk` is the only module that imports
SimpleITK.
"""
