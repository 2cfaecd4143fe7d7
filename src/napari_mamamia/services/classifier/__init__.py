"""`mamamia score-classifier`, `stack`, `audit`, `split`: tables of scores and of patients."""
