"""No test can write what the user of this computer keeps of the program."""

import os
import threading
from pathlib import Path

import platformdirs
import pytest
from tests import users_files

from napari_mamamia.io.files.user_folders import preferences_path
from napari_mamamia.io.workspace.preferences import Preferences, save_preferences

VARIABLES = ("MAMAMIA_CONFIG_DIR", "MAMAMIA_MODELS_DIR", "MAMAMIA_CACHE_DIR")
OWN = Path(platformdirs.user_config_dir("napari-mamamia", appauthor=False))


@pytest.mark.parametrize("write", [Path.touch, Path.unlink, Path.mkdir, lambda at: at.open("a")])
def test_a_users_file_is_not_written_made_or_taken_away(write):
    before = OWN.exists()
    with pytest.raises(PermissionError, match="user's own"):
        write(OWN / "of_a_test.json")
    assert len(users_files.take_refused()) == 1
    assert OWN.exists() == before
    assert not (OWN / "of_a_test.json").exists()


def test_nothing_takes_a_users_files_place(tmp_path):
    (tmp_path / "new").write_text("new")
    with pytest.raises(PermissionError):
        (tmp_path / "new").rename(OWN / "of_a_test.json")
    assert users_files.take_refused()


def test_reading_one_is_no_writing():
    (OWN / "of_a_test.json").exists()
    with pytest.raises(FileNotFoundError):
        (OWN / "of_a_test.json").read_text()
    assert users_files.take_refused() == []


def test_preferences_that_a_thread_saves_without_a_folder_of_the_tests_are_refused(monkeypatch):
    monkeypatch.delenv("MAMAMIA_CONFIG_DIR")
    assert preferences_path().parent == OWN

    def save():
        with pytest.raises(OSError, match="user's own"):
            save_preferences(Preferences())

    thread = threading.Thread(target=save)
    thread.start()
    thread.join()
    assert users_files.take_refused()


def test_between_two_tests_there_is_a_folder_too(own_preferences, monkeypatch):
    """What a test leaves at work when it ends writes then."""
    inside = {name: os.environ[name] for name in VARIABLES}
    assert inside["MAMAMIA_CONFIG_DIR"] == str(own_preferences)
    monkeypatch.undo()
    for name in VARIABLES:
        assert os.environ[name] != inside[name]
        assert not f"{Path(os.environ[name]).absolute()}{os.sep}".startswith(users_files.FOLDERS)
