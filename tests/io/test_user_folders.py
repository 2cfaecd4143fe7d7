"""napari's own settings, where the account may not write them."""

import os

import pytest

from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.files import user_folders
from napari_mamamia.io.files.user_folders import copy_read_only_settings, napari_settings


@pytest.fixture
def settings(tmp_path, monkeypatch):
    file = tmp_path / "napari" / "settings.yaml"
    file.parent.mkdir()
    file.write_bytes(b"schema_version: 0.9.0\n")
    monkeypatch.setenv("NAPARI_CONFIG", str(file))
    return file


def test_settings_that_can_be_written_are_used_themselves(settings):
    assert copy_read_only_settings() is None
    settings.unlink()  # napari makes them
    assert copy_read_only_settings() is None


def test_read_only_settings_are_copied_again_at_each_start(settings, own_preferences, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)  # root may write everything
    for content in (b"one\n", b"two\n"):
        settings.write_bytes(content)
        copy = copy_read_only_settings()
        assert copy.parent == own_preferences
        assert copy.read_bytes() == content
    assert settings.read_bytes() == b"two\n"


def test_where_the_copy_cannot_be_written_either_both_places_are_told(settings, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)

    def refuse(*_args, **_keywords):
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(user_folders, "saving", refuse)
    with pytest.raises(SaveError, match="NAPARI_CONFIG") as told:
        copy_read_only_settings()
    assert str(settings) in str(told.value)


def test_a_place_that_cannot_be_reached_is_no_traceback(tmp_path, monkeypatch):
    monkeypatch.setenv("NAPARI_CONFIG", str(tmp_path / ("n" * 300) / "settings.yaml"))
    assert copy_read_only_settings() is None  # the folder above can be written


def test_the_place_of_naparis_settings_is_the_one_that_napari_says(monkeypatch):
    base = pytest.importorskip("napari.utils._base")
    monkeypatch.delenv("NAPARI_CONFIG")
    assert str(napari_settings()) == base._DEFAULT_CONFIG_PATH
