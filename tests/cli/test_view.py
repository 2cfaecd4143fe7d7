"""`mamamia view`: what the window is told, and what is refused before it is made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.review_study import made
from typer import BadParameter

from napari_mamamia.cli import viewing
from napari_mamamia.core.errors import (
    CaseError,
    FormatError,
    MamamiaError,
    UnknownLayoutError,
    list_remedies,
)


@pytest.fixture
def told(monkeypatch):
    """What the window's process would be told."""
    environments = []
    monkeypatch.setattr(viewing, "become", lambda _command, told, _home: environments.append(told))
    monkeypatch.setattr(viewing, "find_spec", lambda _name: True)
    return environments


def checked(told):
    return {**told[0], **viewing.check_names(told[0])}


def test_the_window_is_told_of_the_study_and_the_name_as_the_study_writes_it(tmp_path, told):
    viewing.view(study=made(tmp_path), reader="ANA")
    names = checked(told)
    assert names["MAMAMIA_STUDY"] == str((tmp_path / "STUDY").resolve())
    assert names["MAMAMIA_READER"] == "Ana"
    assert "MAMAMIA_SOURCES" not in names


def test_a_name_that_the_study_has_not_and_a_folder_that_is_none_are_refused(tmp_path, told):
    viewing.view(study=made(tmp_path), reader="zoe")
    with pytest.raises(CaseError, match="Lea Lead, Jo Judge, Ana, Ben"):
        checked(told)
    told.clear()
    viewing.view(study=tmp_path)
    with pytest.raises(FormatError, match="expected a review study"):
        checked(told)


@pytest.mark.parametrize(
    "given",
    [
        {"reader": "Ana"},
        {"paths": [Path("D")], "study": Path("S")},
        {"study": Path("S"), "blind": True},
        {"study": Path("S"), "case": "A"},
        {"case": "A"},
        {"paths": [Path("D"), Path("E")], "case": "A"},
    ],
)
def test_options_that_contradict_each_other_are_refused(given, told):
    with pytest.raises(BadParameter, match="expected"):
        viewing.view(**given)
    assert told == []


def test_a_home_folder_that_does_not_exist_is_named(tmp_path, told, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    with pytest.raises(MamamiaError, match=r"home folder .*gone to exist"):
        viewing.view()
    assert told == []


def test_without_a_path_the_window_is_told_of_nothing_to_open(told):
    viewing.view()
    assert {name for name in checked(told) if name.startswith("MAMAMIA")} <= {
        *("MAMAMIA_START", "MAMAMIA_CONFIG_DIR", "MAMAMIA_MODELS_DIR", "MAMAMIA_CACHE_DIR")
    }


def test_the_case_is_named_as_the_data_set_writes_it_and_an_unknown_one_is_refused(
    small_data_set, told, monkeypatch
):
    monkeypatch.chdir(small_data_set)
    viewing.view([Path()], case="A_1")
    names = checked(told)
    assert json.loads(names["MAMAMIA_SOURCES"]) == [str(small_data_set.resolve())]
    assert names["MAMAMIA_CASE"] == "A_1"
    told.clear()
    viewing.view([small_data_set], case="none")
    with pytest.raises(CaseError):
        checked(told)


def test_a_path_that_is_not_there_starts_no_window_unless_the_window_reports_it(tmp_path, told):
    path = tmp_path / "none"
    with pytest.raises(FormatError):
        viewing.view([path])
    assert told == []
    viewing.view([path], in_window=True)
    assert json.loads(checked(told)["MAMAMIA_SOURCES"]) == [str(path)]


def test_of_a_folder_with_an_unknown_layout_the_remedy_is_the_windows_question(tmp_path, told):
    viewing.view([tmp_path])
    with pytest.raises(UnknownLayoutError) as refused:
        checked(told)
    assert [remedy.option for remedy in list_remedies(refused.value)] == ["in_window"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a screen")
def test_without_a_screen_the_command_says_so(tmp_path):
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: text for name, text in os.environ.items() if name not in names}
    program = [sys.executable, "-c", "from napari_mamamia.cli import main; main()", "view"]
    answer = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: expected a graphical display")
