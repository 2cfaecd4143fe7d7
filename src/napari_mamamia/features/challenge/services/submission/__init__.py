"""A team's program on a data set, and what this computer can hold it with."""
