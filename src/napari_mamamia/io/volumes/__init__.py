"""Formats of volumes and their voxels, fast: NIfTI and NRRD.

`streams`, `inflate` and `planes` read, `blocks` and `voxel_writer` write and read back. What uses
volumes takes `io.data_set.volumes`, the one door to all formats.
"""
