"""Formats of volumes and their voxels, fast: NIfTI and NRRD.

`streams` and `inflate` read, `voxel_writer` writes, and reads back. What uses volumes
takes `io.data_set.volumes`, the one door to all formats.
"""
