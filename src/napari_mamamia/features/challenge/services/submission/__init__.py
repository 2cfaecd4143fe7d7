"""Run a team's program on a data set."""
