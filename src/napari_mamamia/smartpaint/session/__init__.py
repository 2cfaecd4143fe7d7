"""One editing session: labels, membership, marks, the current stroke, undo."""
