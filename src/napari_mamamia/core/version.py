"""The version of this software, which is stated only here."""

__version__ = "0.1.0"
