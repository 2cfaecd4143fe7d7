"""Check for the optional package for clusters without importing it."""

from importlib.util import find_spec


def cluster_installed() -> bool:
    """Return whether dask.distributed (extra ``cluster``) is installed."""
    return find_spec("distributed") is not None
