"""The commands for challenges, rankings, sites and submissions."""
