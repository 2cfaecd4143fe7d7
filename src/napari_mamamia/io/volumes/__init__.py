"""Formats of volumes and their voxels, fast: NIfTI and NRRD.

`streams`, `inflate` and `planes` read, `voxel_writer` writes, and reads back. What uses volumes
takes `io.data_set.volumes`, the one door to all formats.
"""
