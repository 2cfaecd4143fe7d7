"""Contrast kinetics per voxel: subtraction, enhancement, washout, curve types."""
