"""Prompt engines, and the processes in which they run."""
