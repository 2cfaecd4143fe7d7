"""Registration of a case and of a data set."""
