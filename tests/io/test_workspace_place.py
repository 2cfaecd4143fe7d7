"""A workspace is found again wherever it and its data set went; who wins is said."""

import json
import shutil
from pathlib import Path

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.files import json_text
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind, PhaseSource
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace import place
from napari_mamamia.io.workspace import place as workspace_place
from napari_mamamia.io.workspace.place import (
    MARK_NAME,
    Relation,
    WorkspaceMark,
    find_workspace,
    prints_of,
    relation_to,
    require_own,
)
from napari_mamamia.io.workspace.preferences import Preferences, remember_workspace
from napari_mamamia.io.workspace.workspace import Workspace

IDS = tuple(f"A_{number}" for number in range(12))


@pytest.fixture(autouse=True)
def documents(tmp_path, monkeypatch):
    folder = tmp_path / "documents" / "napari-mamamia"
    monkeypatch.setattr(workspace_place, "documents_folder", lambda: folder)
    return folder


def images(root: Path, exam="first", ids=IDS) -> DataSet:
    """Write the files of a data set that has one file for each case, and return it."""
    for case_id in ids:
        path = root / f"{case_id}.nii.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{exam} exam of {case_id}".encode() * 9000)
    return data_set_at(root)


def data_set_at(root: Path) -> DataSet:
    cases = tuple(
        CaseFiles(path.name.removesuffix(".nii.gz"), (PhaseSource((path,)),))
        for path in sorted(root.glob("*.nii.gz"))
    )
    return DataSet(root, LayoutKind.MAMA_MIA, cases)


def worked_on(data_set: DataSet, folder: Path) -> Path:
    """Make a workspace with a mask, as saving does."""
    (folder / "predictions" / "kinetic").mkdir(parents=True)
    (folder / "predictions" / "kinetic" / "A_1.nii.gz").write_bytes(b"mask")
    Workspace(folder, WorkspaceMark(data_set.root, prints_of(data_set))).note_data_set()
    return folder


@pytest.fixture
def trial(tmp_path):
    """A data set and its workspace beside it, neither of which has the name of the other."""
    data_set = images(tmp_path / "trial" / "dataset")
    worked_on(data_set, tmp_path / "trial" / "workspace")
    return tmp_path / "trial"


def found(root: Path, preferences=None):
    return find_workspace(data_set_at(root), preferences or Preferences())


def test_a_workspace_beside_the_data_set_is_found_by_its_note(trial):
    place = found(trial / "dataset")
    assert place.root == trial / "workspace"
    assert place.why == "next to the data set"
    assert place.warnings == ()


def test_both_moved_together_are_together_again(trial):
    moved = trial.rename(trial.with_name("other account"))
    assert found(moved / "dataset").root == moved / "workspace"


@pytest.mark.parametrize("renamed", ["dataset", "workspace"])
def test_a_renamed_folder_is_found_by_the_cases(trial, renamed):
    (trial / renamed).rename(trial / "new name")
    names = {"dataset": "dataset", "workspace": "workspace", renamed: "new name"}
    assert found(trial / names["dataset"]).root == trial / names["workspace"]


def test_a_copy_goes_on_with_its_own_workspace_also_where_the_first_is_remembered(trial):
    copy = trial.with_name("copy")
    shutil.copytree(trial, copy)
    known = remember_workspace(Preferences(), trial / "dataset", trial / "workspace")
    assert found(copy / "dataset", known).root == copy / "workspace"
    assert found(trial / "dataset", known).root == trial / "workspace"


@pytest.fixture
def exams(tmp_path):
    """A folder of MAMA-MIA with its workspace beside it, as the program makes them."""
    exams_at(tmp_path / "data")
    worked_on(find_data_set(tmp_path / "data"), tmp_path / "data-workspace")
    return tmp_path / "data"


def exams_at(root: Path, exam="first") -> None:
    for case_id in ("DUKE_001", "DUKE_002"):
        for phase in range(2):
            path = root / "images" / case_id / f"{case_id}_{phase:04}.nii.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"{exam} {case_id} {phase}".encode() * 9000)


def find_for(root: Path, preferences=None):
    return find_workspace(find_data_set(root), preferences or Preferences())


def test_a_data_set_copied_alone_does_not_get_the_masks_of_the_first(exams):
    copy = exams.with_name("data_ten")
    shutil.copytree(exams, copy)
    place = find_for(copy)
    assert (place.root, place.why) == (copy.with_name("data_ten-workspace"), "new")
    assert str(exams.with_name("data-workspace")) in place.warnings[0]
    assert str(exams) in place.warnings[0]
    assert find_for(exams).root == exams.with_name("data-workspace")


def test_a_copied_case_does_not_get_the_masks_of_its_data_set(exams):
    case = exams.with_name("DUKE_001")
    shutil.copytree(exams / "images" / "DUKE_001", case)
    assert find_for(case).root == exams.with_name("DUKE_001-workspace")


def test_a_copy_with_its_own_workspace_has_no_warning_for_either(exams):
    copy = exams.with_name("data_ten")
    shutil.copytree(exams, copy)
    own = worked_on(find_data_set(copy), copy.with_name("data_ten-workspace"))
    place = find_for(copy)
    assert (place.root, place.warnings) == (own, ())
    place = find_for(exams)
    assert (place.root, place.warnings) == (exams.with_name("data-workspace"), ())


def test_a_data_set_and_workspace_copied_under_a_new_name_belong_together(exams):
    copy = exams.with_name("data_ten")
    shutil.copytree(exams, copy)
    shutil.copytree(exams.with_name("data-workspace"), copy.with_name("data_ten-workspace"))
    assert find_for(copy).root == copy.with_name("data_ten-workspace")
    assert find_for(exams).root == exams.with_name("data-workspace")


def test_a_copy_of_the_same_name_in_a_folder_does_not_get_the_masks_in_the_documents(
    exams, documents, tmp_path
):
    shutil.rmtree(exams.with_name("data-workspace"))
    worked_on(find_data_set(exams), documents / "data-0a1b2c-workspace")
    copy = tmp_path / "elsewhere" / "data"
    shutil.copytree(exams, copy)
    assert find_for(copy).root == tmp_path / "elsewhere" / "data-workspace"
    assert find_for(exams).root == documents / "data-0a1b2c-workspace"


def test_a_file_and_a_folder_of_one_name_with_equal_images_have_two_workspaces(tmp_path):
    folder = images(tmp_path / "A_1", ids=("A_1",))
    file = Path(shutil.copy(folder.root / "A_1.nii.gz", tmp_path))
    case = CaseFiles("A_1", (PhaseSource((file,)),))
    worked_on(DataSet(file, LayoutKind.SINGLE_FILE, (case,)), tmp_path / "A_1-workspace")
    assert find_workspace(folder, Preferences()).root == tmp_path / "A_1-workspace-2"


def test_work_on_a_copy_in_a_chosen_workspace_leaves_it_to_the_first_too(exams):
    copy = exams.with_name("data_ten")
    shutil.copytree(exams, copy)
    shared = worked_on(find_data_set(exams), exams.with_name("masks"))
    shutil.rmtree(exams.with_name("data-workspace"))
    chosen = remember_workspace(Preferences(), copy, shared)
    assert find_for(copy, chosen).root == shared
    second = find_data_set(copy)
    Workspace(shared, WorkspaceMark(second.root, prints_of(second))).note_data_set()
    assert find_for(exams).root == shared


def test_a_link_to_a_data_set_and_a_folder_in_it_have_its_workspace(exams):
    link = exams.with_name("link")
    link.symlink_to(exams)
    for root in (link, exams / "images"):
        assert find_for(root).root == exams.with_name("data-workspace")


def test_a_moved_data_set_keeps_its_masks_where_another_exam_took_its_place(exams):
    moved = exams.rename(exams.with_name("baseline"))
    exams_at(exams, "second")
    assert find_for(moved).root == exams.with_name("data-workspace")


def test_a_data_set_that_grew_or_lost_cases_keeps_its_workspace(trial):
    images(trial / "dataset", ids=tuple(f"B_{number}" for number in range(200)))
    (trial / "dataset" / "A_0.nii.gz").unlink()
    assert found(trial / "dataset").root == trial / "workspace"


def test_another_exam_with_the_same_ids_in_its_place_does_not_get_its_masks(trial):
    shutil.rmtree(trial / "dataset")
    images(trial / "dataset", "second")
    place = found(trial / "dataset")
    assert place.root == trial / "dataset-workspace"


def test_a_follow_up_that_shares_a_case_with_the_baseline_does_not_get_its_masks(trial):
    followup = images(trial / "follow-up", "second").root
    noted = json.loads((trial / "workspace" / MARK_NAME).read_text())["data_sets"][0]["cases"]
    shared = f"{next(iter(noted))}.nii.gz"
    shutil.copy(trial / "dataset" / shared, followup / shared)
    assert found(followup).root == trial / "follow-up-workspace"
    assert found(trial / "dataset").root == trial / "workspace"


def test_a_data_set_with_some_images_written_anew_keeps_its_workspace(trial):
    noted = json.loads((trial / "workspace" / MARK_NAME).read_text())["data_sets"][0]["cases"]
    for case_id in list(noted)[:3]:
        (trial / "dataset" / f"{case_id}.nii.gz").write_bytes(b"corrected")
    assert found(trial / "dataset").root == trial / "workspace"


def test_another_exam_of_the_same_name_gets_a_new_workspace_with_a_word(tmp_path):
    worked_on(images(tmp_path / "trial"), tmp_path / "trial-workspace")
    images(tmp_path / "trial", "second")
    place = found(tmp_path / "trial")
    assert place.root == tmp_path / "trial-workspace-2"
    assert "belongs to another data set with the same case ids" in place.warnings[0]


def test_a_remembered_workspace_of_another_exam_is_not_used(trial):
    followup = images(trial / "follow-up", "second").root
    known = remember_workspace(Preferences(), followup, trial / "workspace")
    place = found(followup, known)
    assert place.root == trial / "follow-up-workspace"
    assert "another data set" in place.warnings[0]


def test_what_was_chosen_on_this_account_wins_and_the_other_is_named(trial, tmp_path):
    chosen = worked_on(data_set_at(trial / "dataset"), tmp_path / "mine")
    known = remember_workspace(Preferences(), trial / "dataset", chosen)
    place = found(trial / "dataset", known)
    assert (place.root, place.why) == (chosen, "chosen on this account")
    assert place.warnings == (
        (
            f"the folder {trial / 'workspace'} also contains masks of this data set, which are not "
            "shown"
        ),
    )


def test_a_chosen_folder_that_is_gone_gives_way_to_the_one_beside_with_a_word(trial, tmp_path):
    known = remember_workspace(Preferences(), trial / "dataset", tmp_path / "gone")
    place = found(trial / "dataset", known)
    assert place.root == trial / "workspace"
    assert "no longer exists" in place.warnings[0]


def test_a_chosen_folder_that_is_not_made_yet_is_used(tmp_path):
    root = images(tmp_path / "dataset").root
    known = remember_workspace(Preferences(), root, tmp_path / "mine")
    assert found(root, known).root == tmp_path / "mine"


def test_of_two_workspaces_the_one_that_points_here_wins_and_the_other_is_named(trial):
    copied = trial / "a copy from elsewhere"
    shutil.copytree(trial / "workspace", copied)
    note = json.loads((copied / MARK_NAME).read_text())
    note["data_sets"][0]["path"] = "../elsewhere"
    (copied / MARK_NAME).write_text(json.dumps(note))
    place = found(trial / "dataset")
    assert place.root == trial / "workspace"
    assert str(copied) in place.warnings[0]


def test_a_data_set_that_was_moved_alone_keeps_the_workspace_that_was_chosen(trial, tmp_path):
    known = remember_workspace(Preferences(), trial / "dataset", trial / "workspace")
    moved = (trial / "dataset").rename(tmp_path / "moved")
    place = found(moved, known)
    assert place.root == trial / "workspace"
    assert "former path" in place.why


def test_a_workspace_that_cannot_be_written_to_is_opened_for_looking(trial, monkeypatch):
    monkeypatch.setattr(workspace_place, "can_write_in", lambda _folder: False)
    place = found(trial / "dataset")
    assert place.root == trial / "workspace"
    assert "is read-only" in place.warnings[0]


def test_work_begun_in_the_documents_goes_on_there_also_from_another_path(
    trial, documents, monkeypatch
):
    own = worked_on(data_set_at(trial / "dataset"), documents / "dataset-0a1b2c-workspace")
    monkeypatch.setattr(workspace_place, "can_write_in", lambda folder: folder == own)
    moved = trial.rename(trial.with_name("mounted elsewhere"))
    place = found(moved / "dataset")
    assert (place.root, place.why) == (own, "in your documents")
    assert str(moved / "workspace") in place.warnings[0]


def test_a_workspace_from_before_the_notes_is_taken_by_its_name(tmp_path):
    root = images(tmp_path / "trial").root
    (tmp_path / "trial-workspace").mkdir()
    assert found(root).root == tmp_path / "trial-workspace"


def test_a_note_is_written_only_into_a_folder_that_is_there(tmp_path):
    data_set = images(tmp_path / "trial")
    workspace = Workspace(tmp_path / "w", WorkspaceMark(data_set.root, prints_of(data_set)))
    workspace.note_data_set()
    assert not (tmp_path / "w").exists()


def test_a_workspace_that_serves_two_data_sets_with_other_ids_names_both(tmp_path):
    first, second = images(tmp_path / "a"), images(tmp_path / "b", ids=("C_1", "C_2"))
    folder = worked_on(first, tmp_path / "both")
    Workspace(folder, WorkspaceMark(second.root, prints_of(second))).note_data_set()
    assert relation_to(folder, first) is relation_to(folder, second) is Relation.SAME


@pytest.mark.parametrize("refused", ["an image", "the note"])
def test_what_the_disk_refuses_now_is_not_forgotten(trial, monkeypatch, refused):
    """A read that failed once took a case, or all other data sets, out of the note."""
    folder, first = trial / "workspace", data_set_at(trial / "dataset")
    second = images(trial / "second", ids=("B_1", "B_2"))
    Workspace(folder, WorkspaceMark(second.root, prints_of(second))).note_data_set()

    def read_note():
        entries = json.loads((folder / MARK_NAME).read_text())["data_sets"]
        return {one["path"]: one["cases"] for one in entries}

    before = read_note()
    name = MARK_NAME if refused == "the note" else f"{next(iter(prints_of(first)))}.nii.gz"

    def refuse(path):
        if path.name == name:
            raise OSError(116, "Stale file handle", str(path))
        return open_plain(path)

    with monkeypatch.context() as patch:
        for module in (place, json_text):
            patch.setattr(module, "open_plain", refuse)
        seen = prints_of(first)
        assert len(seen) == (8 if refused == "the note" else 7)
        Workspace(folder, WorkspaceMark(first.root, seen)).note_data_set()
    assert read_note() == before
    assert len(before) == 2


def test_the_workspace_of_another_exam_with_the_same_ids_cannot_be_chosen(trial):
    followup = images(trial / "follow-up", "second")
    with pytest.raises(CaseError, match="another data set with the same case ids"):
        require_own(trial / "workspace", followup)
    require_own(trial / "workspace", data_set_at(trial / "dataset"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"data_sets": 3}', '{"data_sets": [{"path": 1, "cases": {}}]}', "[" * 9000],
)
def test_a_damaged_note_says_nothing(trial, text):
    (trial / "workspace" / MARK_NAME).write_text(text)
    assert relation_to(trial / "workspace", data_set_at(trial / "dataset")) is Relation.UNKNOWN


def test_a_note_holds_no_path_of_this_computer(trial, tmp_path):
    assert str(tmp_path) not in (trial / "workspace" / MARK_NAME).read_text()
