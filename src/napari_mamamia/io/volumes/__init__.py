"""Volume formats: NIfTI, NRRD, MetaImage.

`formats` lists the formats, `streams` and `inflate` read files, and `voxel_writer` writes and
verifies files. Other packages use `io.data_set.volumes`, which handles all formats.
"""
