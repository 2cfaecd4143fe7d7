"""The Report page: writes reports on the open case or all cases, to read, print and send."""
