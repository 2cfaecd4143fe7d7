"""Kinetic maps, curves, FTV and ultrafast measures of a data set or of the open case."""
