"""Detection scored from tables of boxes or folders of masks; the service of `score-detection`."""
