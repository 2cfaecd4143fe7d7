"""Packages that a module of tests needs, told without importing them.

A worker that only collects the module pays nothing then: monai takes 2.4 s of a processor, and each
of several workers collects all modules.
"""

from importlib.util import find_spec

import pytest


def need_package(name: str) -> None:
    """Skip the module that asks where a package is not installed."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed", allow_module_level=True)
