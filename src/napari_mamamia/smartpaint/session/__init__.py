"""One editing session: labels, membership, marks, the stroke in hand or lifted, undo."""
