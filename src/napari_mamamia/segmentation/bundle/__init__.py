"""MONAI bundles: configs read as records, `@` followed, `$` never evaluated.

`engine` joins it; `allowed` names the classes that are made, `card` is what is known without MONAI,
`windows` its sliding window. `in_room` runs a refused bundle in a closed room.
"""
