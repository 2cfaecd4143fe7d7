"""The Cases page: list of cases, and opening data sets and cases."""
