"""Volume formats: NIfTI, NRRD, MetaImage.

`formats` lists them; `streams` and `inflate` read, `voxel_writer` writes and verifies. Other
packages use `io.data_set.volumes`, which handles all formats.
"""
