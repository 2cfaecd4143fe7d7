"""The brush: which images it compares, in units of their noise; one dab, its reach; a stroke."""
