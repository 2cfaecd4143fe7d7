"""The package's version: told when asked for, and not looked up before."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import napari_mamamia


def test_the_package_tells_the_version_that_is_installed():
    assert napari_mamamia.__version__ == version("napari-mamamia")
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = napari_mamamia.other


def test_importing_the_package_looks_nothing_up():
    code = (
        "import sys; old = set(sys.modules); import napari_mamamia; print(set(sys.modules) - old)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "importlib.metadata" not in found.stdout
    assert "napari_mamamia" in found.stdout
