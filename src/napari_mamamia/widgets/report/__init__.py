"""The Report page: write reports on the open case or all cases, to read, print and send."""
