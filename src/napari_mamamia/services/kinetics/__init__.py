"""Maps, curves, FTV and ultrafast measures, of a data set and of the open case."""
