"""Scores of cases and cohorts, computed from masks under a named profile."""
