"""Plain functions of two masks and a grid; nan where a value is undefined.

`registry` is the list of metrics as data. `nearest` holds the exact distances,
`crop` the joint block.
"""
