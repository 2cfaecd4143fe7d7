"""The version of this software: the only file that states it."""

__version__ = "0.1.0"
