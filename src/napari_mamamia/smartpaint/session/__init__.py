"""One editing session: labels, membership, the stroke in hand, undo with a memory limit."""
