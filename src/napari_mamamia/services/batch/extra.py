"""Check for the optional packages for processes and clusters without importing them."""

from importlib.util import find_spec


def cluster_installed() -> bool:
    """Return whether dask.distributed and cryptography (extra ``cluster``) are installed."""
    return all(find_spec(package) is not None for package in ("distributed", "cryptography"))
