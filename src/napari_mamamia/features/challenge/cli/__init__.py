"""The commands of challenges, rankings, sites and submissions."""
