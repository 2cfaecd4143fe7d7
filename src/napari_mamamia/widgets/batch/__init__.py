"""Page Batch, and the results of a data set at the window's bottom."""
