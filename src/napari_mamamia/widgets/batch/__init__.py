"""The Batch page, and the results of a scored data set in the panel at the bottom of the window."""
