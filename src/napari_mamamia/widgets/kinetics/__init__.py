"""Page Kinetics: maps, curves, FTV, times, motion."""
