"""The Batch page, and the results of a data set in the panel at the bottom of the window."""
