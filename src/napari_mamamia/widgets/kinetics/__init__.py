"""The Kinetics page: maps, curves, FTV, times and motion."""
