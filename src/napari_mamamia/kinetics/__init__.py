"""Kinetics: contrast-curve maps, classes and the choice of phases, on plain arrays."""
