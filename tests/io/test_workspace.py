import sys
import unicodedata
from pathlib import Path

import pytest

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.workspace.workspace import StoredMask, Workspace, file_name


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_paths_follow_model_and_reader(tmp_path):
    workspace = Workspace(tmp_path)
    assert workspace.prediction("kinetic", "A_1") == tmp_path / "predictions/kinetic/A_1.nii.gz"
    assert workspace.refined("Ana López", "A_1") == tmp_path / "refined/Ana López/A_1.nii.gz"
    assert (workspace.scores, workspace.exports) == (tmp_path / "scores", tmp_path / "exports")


def test_asking_for_paths_makes_nothing(tmp_path):
    workspace = Workspace(tmp_path / "ws")
    workspace.prediction("kinetic", "A")
    assert workspace.models() == workspace.readers() == workspace.masks_of("A") == ()
    assert not (tmp_path / "ws").exists()


def test_stored_masks_of_a_case_are_listed_predictions_first(tmp_path):
    workspace = Workspace(tmp_path)
    model_10 = touch(workspace.prediction("model 10", "A"))
    model_2 = touch(workspace.prediction("model 2", "A"))
    refined = touch(workspace.refined("李 医生", "A"))
    touch(workspace.refined("Ben", "B"))
    touch(tmp_path / "refined/stray file.txt")
    assert workspace.models() == ("model 2", "model 10")
    assert workspace.readers() == ("Ben", "李 医生")
    assert workspace.masks_of("A") == (
        StoredMask("prediction", "model 2", model_2),
        StoredMask("prediction", "model 10", model_10),
        StoredMask("refined", "李 医生", refined),
    )


@pytest.mark.parametrize(
    "name",
    ["", "   ", ".", "..", "a/b", "a\\b", "../up", "a\nb", "a\0b", "a\u2028b", "a:b", "what?"],
)
def test_names_that_systems_take_apart_are_refused(tmp_path, name):
    with pytest.raises(CaseError, match="the name of a reader"):
        Workspace(tmp_path).refined(name, "A")


@pytest.mark.parametrize(
    "name",
    [" Ana", "Ana ", "Ana.", ".hidden", "con", "COM1.txt", "x" * 201, "乳" * 67, "\ud800"],
)
def test_names_that_cannot_be_folders_are_refused(tmp_path, name):
    with pytest.raises(CaseError, match="the name of a reader"):
        Workspace(tmp_path).refined(name, "A")


@pytest.mark.parametrize("case_id", ["", "../A", "A/B"])
def test_case_ids_that_cannot_be_files_are_refused(tmp_path, case_id):
    with pytest.raises(CaseError, match="a case id"):
        Workspace(tmp_path).prediction("kinetic", case_id)


def test_a_refusal_says_what_is_wrong_and_what_to_use():
    with pytest.raises(CaseError, match=r"holds /: use letters, digits"):
        file_name("a/b", "the name of a reader")


@pytest.mark.parametrize(
    "name", ["Dr. Ana-Maria O'Neil", "李 医生", "kinetic", "x" * 200, "console"]
)
def test_ordinary_names_stay_as_they_are(name):
    assert file_name(name) == name


def test_accents_get_one_form():
    assert file_name(unicodedata.normalize("NFD", "López")) == "López"


def test_a_reader_whose_name_differs_in_letter_case_only_is_refused(tmp_path):
    workspace = Workspace(tmp_path)
    touch(workspace.refined("Ana", "A"))
    assert workspace.refined("Ana", "B").parent.name == "Ana"
    with pytest.raises(CaseError, match=r"'ana' from 'Ana'"):
        workspace.refined("ana", "A")


def test_a_model_and_a_reader_may_have_one_name(tmp_path):
    workspace = Workspace(tmp_path)
    touch(workspace.prediction("ana", "A"))
    assert workspace.refined("Ana", "A").parent == tmp_path / "refined/Ana"


def test_the_cases_that_a_model_has_masks_of_are_listed(tmp_path):
    workspace = Workspace(tmp_path)
    for case_id in ("A", "B 2"):
        touch(workspace.prediction("kinetic", case_id))
    touch(workspace.predictions / "kinetic/A.json")
    touch(workspace.predictions / "kinetic/.mamamia-x.part")
    assert workspace.case_ids("prediction", "kinetic") == {"A", "B 2"}
    assert workspace.case_ids("prediction", "none") == frozenset()
    assert workspace.case_ids("refined", "kinetic") == frozenset()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_hidden_folders_are_no_readers(tmp_path):
    touch(tmp_path / "refined/.cache/A.nii.gz")
    assert Workspace(tmp_path).readers() == ()


def test_the_cases_of_a_model_are_its_mask_files(tmp_path):
    workspace = Workspace(tmp_path)
    assert workspace.case_ids("prediction", "kinetic") == frozenset()
    folder = workspace.prediction("kinetic", "A").parent
    folder.mkdir(parents=True)
    for name in ("A.nii.gz", "A.json", "B.nii.gz", "run.json"):
        (folder / name).touch()
    assert workspace.case_ids("prediction", "kinetic") == {"A", "B"}
    assert folder.parent == workspace.predictions


def test_people_are_all_who_left_something_in_the_workspace(tmp_path):
    root = tmp_path / "work"
    for folder, name in (
        ("refined", "Ana"), ("findings", "Ben"), ("measurements", "Cem"), ("case_tags", "Ana"),
        ("case_tags", "Dora"), ("predictions", "model"), ("refined", ".tmp"),
    ):  # fmt: skip
        (root / folder / name).mkdir(parents=True)
    (root / "refined" / "note.txt").touch()
    assert Workspace(root).people() == ("Ana", "Ben", "Cem", "Dora")
    assert Workspace(root / "none").people() == ()
    blind = Workspace(root, blinding=ALL_HIDDEN, reader="Ben")
    assert blind.people() == ("Ben",)
