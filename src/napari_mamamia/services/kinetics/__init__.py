"""Maps, curves, FTV and ultrafast columns, of a data set and of the case that is open."""
