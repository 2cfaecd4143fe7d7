"""One file states the version: the package, its metadata and the command have the same."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import napari_mamamia
from napari_mamamia.core.provenance import software_version


def test_package_metadata_and_command_have_one_version():
    assert napari_mamamia.__version__ == version("napari-mamamia")
    assert software_version() == f"napari-mamamia {napari_mamamia.__version__}"
    printed = subprocess.run(
        [str(Path(sys.executable).with_name("mamamia")), "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == software_version()
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = napari_mamamia.other


def test_importing_the_package_reads_no_metadata():
    code = (
        "import sys; old = set(sys.modules); import napari_mamamia; print(set(sys.modules) - old)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "importlib.metadata" not in found.stdout
    assert "napari_mamamia" in found.stdout
