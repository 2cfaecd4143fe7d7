"""Page Report: the open case, or all, as pages to read, print and send."""
