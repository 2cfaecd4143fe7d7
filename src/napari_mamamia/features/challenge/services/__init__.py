"""A challenge in a folder, rankings, and submissions that are run."""
