"""The Kinetics page: maps, curves, FTV, times, motion."""
