"""Keys of readers that are made quickly."""

import pytest

from napari_mamamia.features.review.io import keys


@pytest.fixture(autouse=True)
def light_keys(request, monkeypatch):
    """Make the derivation of keys fast, unless a test asks for `strong_keys`: it takes 0.3 s."""
    if "strong_keys" not in request.fixturenames:
        monkeypatch.setattr(keys, "_COST", 1 << 4)


@pytest.fixture
def strong_keys():
    """Leave the derivation of keys as slow as it is."""
