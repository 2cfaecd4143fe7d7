"""Fixtures that several rooms share."""

import os
from pathlib import Path

import pytest

REAL_DATA = Path(os.environ.get("MAMAMIA_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def real_data():
    """Return a function from a folder name to its path, skipping where the real files are absent."""

    def find(name: str) -> Path:
        folder = REAL_DATA / name
        if not folder.exists():
            pytest.skip(f"real files are absent: {folder} (set MAMAMIA_REAL_DATA)")
        return folder

    return find


@pytest.fixture(autouse=True)
def own_preferences(tmp_path_factory, monkeypatch):
    """Keep the user's own preferences out of tests and tests out of them."""
    folder = tmp_path_factory.mktemp("preferences")
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(folder))
    return folder
