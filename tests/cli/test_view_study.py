"""`mamamia view --study`: what the window is told, and what is refused before it opens."""

import pytest
from tests.review_study import made
from typer import BadParameter

from napari_mamamia.cli import viewing
from napari_mamamia.core.errors import CaseError, FormatError


@pytest.fixture
def told(monkeypatch):
    """What the window's process would be told."""
    environments = []
    monkeypatch.setattr(viewing, "become", lambda _command, told, _home: environments.append(told))
    monkeypatch.setattr(viewing, "find_spec", lambda _name: True)
    return environments


def test_the_window_is_told_of_the_study_and_the_name_as_the_study_writes_it(tmp_path, told):
    viewing.view(study=made(tmp_path), reader="ANA")
    assert told[0]["MAMAMIA_STUDY"] == str((tmp_path / "STUDY").resolve())
    assert told[0]["MAMAMIA_READER"] == "Ana"
    assert "MAMAMIA_DATA_SET" not in told[0]


def test_a_name_that_the_study_has_not_and_a_folder_that_is_none_are_refused(tmp_path, told):
    with pytest.raises(CaseError, match="the study has Lea Lead, Jo Judge, Ana, Ben"):
        viewing.view(study=made(tmp_path), reader="zoe")
    with pytest.raises(FormatError, match="expected a review study"):
        viewing.view(study=tmp_path)
    assert told == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"reader": "Ana"},
        {"data_set": "D", "study": "S"},
        {"study": "S", "blind": True},
        {"study": "S", "case": "A"},
    ],
)
def test_a_study_says_itself_what_is_opened_and_hidden(given, told):
    with pytest.raises(BadParameter, match="expected"):
        viewing.view(**given)
    assert told == []
