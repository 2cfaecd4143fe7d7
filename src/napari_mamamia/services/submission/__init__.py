"""Run a team's program on a data set, and check what this computer can run."""
