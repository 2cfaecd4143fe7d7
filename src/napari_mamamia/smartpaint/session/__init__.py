"""One editing session: labels, membership, marks, the current stroke and undo."""
