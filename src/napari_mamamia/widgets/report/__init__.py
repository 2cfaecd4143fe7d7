"""The Report page: reports of the open case or of all cases, to read, print and send."""
