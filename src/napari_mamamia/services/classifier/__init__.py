"""`mamamia score-classifier`: tables of scores, labels and readers."""
