"""Formats of volumes and their voxels, fast: one table, NIfTI, NRRD, MetaImage.

`formats` is the table; `streams` and `inflate` read, `voxel_writer` writes, and reads back. What
uses volumes takes `io.data_set.volumes`, the one door to all formats.
"""
