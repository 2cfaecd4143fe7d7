import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from napari_mamamia.core.errors import CaseError, SaveError
from napari_mamamia.io.files.user_folders import preferences_path
from napari_mamamia.io.workspace.preferences import (
    Preferences,
    load_preferences,
    remember_recent,
    remember_workspace,
    save_preferences,
    workspace_for,
)


def test_without_a_file_there_are_defaults():
    assert load_preferences() == Preferences(None, (), ())


def test_preferences_come_back_as_they_were_saved(tmp_path):
    preferences = Preferences(
        "Ana López 李", ((tmp_path / "a b", tmp_path / "ws"),), (tmp_path / "ü", tmp_path / "x")
    )
    save_preferences(preferences)
    assert load_preferences() == preferences


def test_the_config_folder_can_be_chosen_by_the_environment(own_preferences):
    assert preferences_path() == own_preferences / "preferences.json"


def test_the_first_preferences_of_a_computer_make_their_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "not" / "there"))
    save_preferences(Preferences("Ana"))
    assert load_preferences().reader == "Ana"


def test_saving_again_replaces(tmp_path):
    save_preferences(Preferences("Ana"))
    save_preferences(Preferences("Ben"))
    assert load_preferences().reader == "Ben"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"reader": 3}',
        '{"workspaces": {}}',
        '{"workspaces": ["x"]}',
        '{"workspaces": [{"data_set": "/a"}]}',
        '{"recent": [1]}',
    ],
)
def test_a_damaged_file_gives_defaults_and_is_kept(own_preferences, text):
    (own_preferences / "preferences.json").write_text(text)
    assert load_preferences() == Preferences()
    assert (own_preferences / "preferences.json.bad").read_text() == text
    assert not (own_preferences / "preferences.json").exists()


def test_a_file_of_bytes_that_are_no_text_gives_defaults(own_preferences):
    (own_preferences / "preferences.json").write_bytes(b"\xff\xfe\x00")
    assert load_preferences() == Preferences()


def test_keys_of_a_later_version_are_passed_over(own_preferences):
    (own_preferences / "preferences.json").write_text('{"reader": "Ana", "theme": "dark"}')
    assert load_preferences() == Preferences("Ana")


def test_saving_where_a_file_stands_in_the_way_is_a_save_error(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "file"))
    with pytest.raises(SaveError):
        save_preferences(Preferences("Ana"))


def test_the_workspace_lies_beside_the_data_set(tmp_path):
    (tmp_path / "trial").mkdir()
    assert workspace_for(tmp_path / "trial", Preferences()) == tmp_path / "trial-workspace"
    assert list(tmp_path.iterdir()) == [tmp_path / "trial"]


def test_the_workspace_of_a_file_has_its_name_without_suffix(tmp_path):
    (tmp_path / "dyn.nii.gz").touch()
    assert workspace_for(tmp_path / "dyn.nii.gz", Preferences()) == tmp_path / "dyn-workspace"


def test_a_file_inside_a_data_set_has_its_workspace_beside_the_data_set(tmp_path):
    file = tmp_path / "trial/images/A/A_0001.nii.gz"
    file.parent.mkdir(parents=True)
    file.touch()
    assert workspace_for(file, Preferences()) == tmp_path / "A_0001-workspace"


def test_a_folder_beside_the_images_is_a_data_set_of_its_own(tmp_path):
    file = tmp_path / "images/A/A_0001.nii.gz"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / "other").mkdir()
    assert workspace_for(tmp_path / "other", Preferences()) == tmp_path / "other-workspace"


def test_a_chosen_workspace_is_remembered(tmp_path):
    chosen = remember_workspace(Preferences(), tmp_path / "trial", tmp_path / "mine")
    save_preferences(chosen)
    assert workspace_for(tmp_path / "trial", load_preferences()) == tmp_path / "mine"
    assert workspace_for(tmp_path / "trial" / "..", chosen) != tmp_path / "mine"


def test_choosing_again_replaces_the_choice(tmp_path):
    once = remember_workspace(Preferences(), tmp_path / "a", tmp_path / "one")
    twice = remember_workspace(once, tmp_path / "a", tmp_path / "two")
    assert twice.workspaces == ((tmp_path / "a", tmp_path / "two"),)


@pytest.mark.parametrize("inside", ["", "sub", "sub/deeper"])
def test_a_workspace_in_the_data_set_is_refused(tmp_path, inside):
    with pytest.raises(CaseError, match="outside the data set"):
        remember_workspace(Preferences(), tmp_path / "a", tmp_path / "a" / inside)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder nobody can write to")
def test_beside_a_read_only_place_the_documents_are_used():
    first = workspace_for(Path("/proc/self/trial"), Preferences())
    second = workspace_for(Path("/proc/self/net/trial"), Preferences())
    documents = Path(platformdirs.user_documents_dir()) / "napari-mamamia"
    assert first.parent == second.parent == documents
    assert first.name.startswith("trial-")
    assert first.name.endswith("-workspace")
    assert first != second


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no root folder of this kind")
def test_the_root_folder_has_a_workspace_name_too():
    assert workspace_for(Path("/"), Preferences()).name.endswith("workspace")


def test_recent_data_sets_are_ten_without_doubles(tmp_path):
    preferences = Preferences()
    for number in [*range(12), 5]:
        preferences = remember_recent(preferences, tmp_path / str(number))
    assert [path.name for path in preferences.recent] == list("5") + [
        str(n) for n in (11, 10, 9, 8, 7, 6, 4, 3, 2)
    ]


def test_preferences_that_could_not_be_read_this_time_are_neither_set_aside_nor_replaced(
    own_preferences, monkeypatch
):
    save_preferences(Preferences(reader="Ana"))

    def stale(path):
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as shared:
        shared.setattr("napari_mamamia.io.workspace.preferences.read_json", stale)
        found = load_preferences()
        assert "Stale file handle" in found.problem
        with pytest.raises(SaveError, match="nothing was written"):
            save_preferences(remember_recent(found, own_preferences / "data"))
    assert load_preferences().reader == "Ana"
    assert [path.name for path in own_preferences.iterdir()] == ["preferences.json"]


def test_what_two_windows_change_at_the_same_time_is_all_kept():
    save_preferences(Preferences("Ana", view=(("slab", "5"), ("pace", "2"))))
    one, other = load_preferences(), load_preferences()
    save_preferences(replace(one, reader="Ben", view=(("slab", "9"), ("pace", "2"))))
    save_preferences(replace(other, keys=(("undo", "Z"),), view=(("slab", "5"), ("pace", "4"))))
    found = load_preferences()
    assert (found.reader, found.keys) == ("Ben", (("undo", "Z"),))
    assert dict(found.view) == {"slab": "9", "pace": "4"}


def test_many_threads_that_each_remember_something_lose_nothing():
    def remember(number):
        kept = load_preferences()
        save_preferences(replace(kept, view=(*kept.view, (f"setting {number}", "on"))))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(remember, range(24)))
    assert len(load_preferences().view) == 24
