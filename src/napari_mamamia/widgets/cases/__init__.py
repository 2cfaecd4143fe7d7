"""The Cases page: the list of cases, and the opening of data sets and cases."""
