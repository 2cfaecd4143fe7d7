"""A blind reading: what is not listed and not read, what is recorded, what is refused."""

import json
import shutil

import numpy as np
import pytest

from napari_mamamia.core.blinding import (
    ALL_HIDDEN,
    NOT_BLIND,
    STUDY_HIDDEN,
    Blinding,
    BlindReading,
    Hidden,
)
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.errors import FormatError, HiddenError, SaveConflictError, SaveError
from napari_mamamia.io.workspace.journal import Opened, decoded, encoded, journal_path, read_journal
from napari_mamamia.io.workspace.protocol import read_protocol
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.services.case.data_set import case_row, case_rows, open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.case.show_case import newer_prediction, open_masks
from napari_mamamia.services.refine.edit_case import open_editing, save_editing
from napari_mamamia.services.refine.unblind import record_unblinding
from napari_mamamia.services.score.case_tags import read_tags, tag_case

BALL = Brush(tool=Tool.SPHERE, radius_mm=3.0)
ALL = "reference, model, other readers, numbers, clinical data"


@pytest.fixture
def world(small_data_set, tmp_path):
    """A data set with an expert's, a model's, an automatic and Ben's mask, tags, a clinical row."""
    workspace = tmp_path / "masks"
    expert = small_data_set / "segmentations" / "expert" / "A_2.nii.gz"
    for folder in ("predictions/secretnet", "refined/Ben"):
        (workspace / folder).mkdir(parents=True)
        shutil.copy(expert, workspace / folder / "A_2.nii.gz")
    automatic = small_data_set / "segmentations" / "automatic"
    automatic.mkdir()
    shutil.copy(expert, automatic / "A_2.nii.gz")
    info = small_data_set / "patient_info_files"
    info.mkdir()
    box = {"x_min": 1, "x_max": 9, "y_min": 1, "y_max": 9, "z_min": 1, "z_max": 4}
    text = {"primary_lesion": {"breast_coordinates": box}}
    (info / "a_2.json").write_text(json.dumps(text))
    return small_data_set, workspace


def opened_blind(world, blinding=ALL_HIDDEN, reader="Ana"):
    return open_data_set(*world, blinding=blinding, reader=reader)


def case_of(world, opened=None):
    return load_case((opened or opened_blind(world)).data_set.case("A_2"))


def edit(world, blinding=ALL_HIDDEN, reader="Ana", strokes=1, save=True):
    """Open the reader's mask of A_2, paint, save and close it."""
    opened = opened_blind(world, blinding, reader)
    editing = open_editing(case_of(world, opened), opened.workspace, reader)
    for at in range(strokes):
        editing.session.press((3.0, 5.0 + at, 5.0), BALL)
        editing.session.release()
    if save:
        save_editing(editing)
    editing.close()
    return opened.workspace.refined(reader, "A_2")


def parameters(mask):
    return dict(read_provenance(sidecar_path(mask)).parameters)


# ------------------------------------------------------------------------ not listed, not read


def test_a_data_set_opened_without_blinding_has_all_of_it(world):
    opened = open_data_set(*world)
    files, row = opened.data_set.case("A_2"), case_row(opened, "A_2")
    assert None not in (files.reference, files.automatic, opened.data_set.clinical)
    assert (row.predictions, row.refined, row.record.age) == (("secretnet",), ("Ben",), 51)
    assert [mask.name for mask in opened.workspace.masks_of("A_2")] == ["secretnet", "Ben"]


def test_what_is_hidden_is_no_part_of_the_data_set(world):
    opened = opened_blind(world)
    files = opened.data_set.case("A_2")
    assert (files.reference, files.automatic, opened.data_set.clinical) == (None, None, None)
    for row in (case_row(opened, "A_2"), *case_rows(opened)):
        assert (row.has_reference, row.predictions, row.refined) == (False, (), ())
        assert (row.record.age, row.record.breast_density, dict(row.record.other)) == (
            None,
            None,
            {},
        )
        assert row.record.acquisition_times_s == (0, 90, 180, 420)
        assert row.status == "new"
    workspace = opened.workspace
    assert workspace.masks_of("A_2") == workspace.models() == workspace.readers() == ()
    assert workspace.newest_prediction("A_2") is None
    assert not workspace.case_ids("prediction", "secretnet")
    assert not workspace.case_ids("refined", "Ben")


@pytest.mark.parametrize("part", list(Hidden))
def test_each_part_is_hidden_alone(world, part):
    opened = opened_blind(world, Blinding(frozenset({part})))
    files, row = opened.data_set.case("A_2"), case_row(opened, "A_2")
    assert (files.reference is None) == (part is Hidden.REFERENCE)
    assert (files.automatic is None) == (part is Hidden.MODEL)
    assert (row.predictions == ()) == (part is Hidden.MODEL)
    assert (row.refined == ()) == (part is Hidden.OTHER_READERS)
    assert (row.record.age is None) == (part in (Hidden.CLINICAL, Hidden.SITE))


def test_a_reader_still_sees_which_masks_are_their_own(world):
    edit(world)
    assert case_row(opened_blind(world), "A_2").refined == ("Ana",)
    assert case_row(opened_blind(world, reader=None), "A_2").refined == ()
    assert case_row(opened_blind(world, reader=None).read_by("Ana"), "A_2").refined == ("Ana",)


def test_a_hidden_mask_is_not_read_even_where_it_is_damaged(world):
    """A warning that a reference cannot be read says that there is one."""
    root, workspace = world
    for mask in (root / "segmentations" / "expert", workspace / "predictions" / "secretnet"):
        (mask / "A_2.nii.gz").write_bytes(b"no mask")
    opened = opened_blind(world)
    case = case_of(world, opened)
    masks = open_masks(case, opened.data_set.case("A_2"), opened.workspace, "Ana")
    assert (masks.masks, masks.problems) == ((), ())
    assert newer_prediction(case, opened.workspace, None) is None


def test_the_breast_box_tells_the_side_of_the_lesion_and_is_hidden_with_the_reference(world):
    assert case_of(world, open_data_set(*world)).breast_box is not None
    assert case_of(world).breast_box is None
    assert case_of(world, opened_blind(world, Blinding.of(["model"]))).breast_box is not None


def test_a_damaged_clinical_table_is_no_word_where_clinical_data_are_hidden(world):
    (world[0] / "clinical_and_imaging_info.xlsx").write_bytes(b"no table")
    assert open_data_set(*world).warnings
    assert opened_blind(world).warnings == ()


def test_tags_of_other_readers_are_not_read(world):
    workspace = open_data_set(*world).workspace
    tag_case(workspace, "Ben", "A_2", "satellite on the left")
    tag_case(workspace, "Ana", "A_2", "clip")
    assert [tag.reader for tag in read_tags(workspace)] == ["Ben", "Ana"]
    assert [tag.tag for tag in read_tags(opened_blind(world).workspace)] == ["clip"]
    assert read_tags(opened_blind(world, reader=None).workspace) == ()


# ------------------------------------------------------------------------------------ recorded


def test_a_blind_mask_says_in_its_provenance_and_journal_what_was_hidden(world):
    mask = edit(world)
    assert parameters(mask)["hidden"] == ALL
    assert "unblinded" not in parameters(mask)
    first = read_journal(journal_path(mask)).records[0].record
    assert isinstance(first, Opened)
    assert first.blinding == ALL_HIDDEN


def test_a_mask_that_was_not_made_blind_says_nothing_of_it(world):
    assert not {"hidden", "unblinded"} & set(parameters(edit(world, NOT_BLIND)))


def test_a_blind_mask_goes_on_blind_and_stays_so(world):
    edit(world)
    edit(world, strokes=2, save=False)
    assert parameters(edit(world))["hidden"] == ALL


def test_a_journal_of_before_counts_as_not_blind(world):
    record = read_journal(journal_path(edit(world))).records[0].record
    entry = json.loads(encoded(record))
    assert decoded(entry)[1].blinding == ALL_HIDDEN
    del entry["hidden"]
    assert decoded(entry)[1].blinding == NOT_BLIND


def test_looking_at_a_blind_mask_with_all_in_sight_is_recorded_without_a_stroke(world):
    mask = edit(world)
    edit(world, NOT_BLIND, strokes=0, save=False)
    assert read_journal(journal_path(mask)).records[-1].record.blinding == NOT_BLIND
    with pytest.raises(HiddenError, match="reference, model and other readers were visible"):
        edit(world)


def test_what_is_saved_after_the_end_of_a_blind_reading_says_when_it_ended(world):
    edit(world)
    said = parameters(edit(world, NOT_BLIND))
    assert "hidden" not in said
    assert said["unblinded"].endswith(f": {ALL} shown")
    at = said["unblinded"][:4]
    assert at.isdigit()
    # Once only, however often it is opened again.
    assert parameters(edit(world, NOT_BLIND))["unblinded"].count("shown") == 1


def test_showing_one_part_leaves_the_others_on_record(world):
    edit(world)
    without_model = Blinding(ALL_HIDDEN.hidden - {Hidden.MODEL})
    said = parameters(edit(world, without_model))
    assert "model" not in said["hidden"]
    assert said["unblinded"].endswith(": model shown")


def test_a_blind_mask_whose_journal_is_lost_is_as_blind_as_its_provenance_says(world):
    journal_path(edit(world)).unlink()
    assert parameters(edit(world))["hidden"] == ALL
    mask = edit(world, NOT_BLIND)
    journal_path(mask).unlink()
    with pytest.raises(HiddenError):
        edit(world)


def test_a_mask_without_provenance_is_not_taken_for_a_blind_one(world):
    mask = edit(world)
    journal_path(mask).unlink()
    sidecar_path(mask).unlink()
    with pytest.raises(HiddenError):
        edit(world)


# ------------------------------------------------------------------------------------- refused


def test_an_own_mask_begun_with_all_in_sight_is_neither_shown_nor_edited_blind(world):
    mask = edit(world, NOT_BLIND)
    before = mask.read_bytes()
    opened = opened_blind(world)
    case = case_of(world, opened)
    shown = open_masks(case, opened.data_set.case("A_2"), opened.workspace, "Ana")
    assert shown.masks == ()
    assert "read under a different name" in shown.problems[0]
    with pytest.raises(HiddenError, match="visible"):
        open_editing(case, opened.workspace, "Ana")
    assert mask.read_bytes() == before
    # Its journal was let go of.
    edit(world, NOT_BLIND)


def test_recorded_strokes_of_a_crash_with_all_in_sight_are_not_shown_blind(world):
    edit(world, NOT_BLIND, save=False)
    with pytest.raises(HiddenError, match="visible"):
        edit(world)


def test_recorded_strokes_of_a_blind_crash_go_on_blind(world):
    edit(world, save=False)
    opened = opened_blind(world)
    editing = open_editing(case_of(world, opened), opened.workspace, "Ana")
    assert editing.recovered is not None
    assert editing.reading == BlindReading(ALL_HIDDEN)
    editing.close()


def test_numbers_and_clinical_data_leave_nothing_in_a_mask(world):
    hidden = Blinding.of(["reference", "model", "other readers"])
    edit(world, hidden)
    assert parameters(edit(world))["hidden"] == "reference, model, other readers"


# --------------------------------------------------------------------------------------- ended


@pytest.mark.parametrize("begun", [True, False])
def test_the_end_of_a_blind_reading_is_on_record_before_anything_is_shown(world, begun):
    if begun:
        edit(world)
    opened = opened_blind(world)
    record_unblinding(case_of(world, opened), opened.workspace, "Ana")
    path = journal_path(opened.workspace.refined("Ana", "A_2"))
    sittings = [placed.record for placed in read_journal(path).records]
    hidden = [one.blinding for one in sittings if isinstance(one, Opened)]
    assert hidden == [ALL_HIDDEN, NOT_BLIND]
    with pytest.raises(HiddenError):
        edit(world)
    assert parameters(edit(world, NOT_BLIND))["unblinded"].endswith(f"{ALL} shown")


def test_the_end_is_refused_while_another_window_holds_the_mask(world, monkeypatch):
    monkeypatch.setattr("napari_mamamia.services.refine.edit_case._OWN_LOCK_S", 0.1)
    opened = opened_blind(world)
    case = case_of(world, opened)
    editing = open_editing(case, opened.workspace, "Ana")
    with pytest.raises(SaveConflictError):
        record_unblinding(case, opened.workspace, "Ana")
    editing.close()


def test_the_end_is_refused_where_it_cannot_be_written(world, monkeypatch):
    opened = opened_blind(world)
    case = case_of(world, opened)
    folder = opened.workspace.root / "refined" / "Ana"
    folder.write_text("a file where the folder would be")
    with pytest.raises((SaveError, OSError)):
        record_unblinding(case, opened.workspace, "Ana")


# ------------------------------------------------------------------------------------ protocol


@pytest.mark.parametrize(
    ("blind", "hidden"),
    [
        (True, ALL_HIDDEN),
        (False, NOT_BLIND),
        ([], NOT_BLIND),
        (["model", "other readers"], Blinding.of(["model", "other readers"])),
    ],
)
def test_a_protocol_says_what_is_hidden(tmp_path, blind, hidden):
    path = tmp_path / "protocol.json"
    path.write_text(json.dumps({"name": "study", "blind": blind}))
    assert read_protocol(path).blinding == hidden


@pytest.mark.parametrize(
    "blind", ["true", 1, None, ["Reference"], [1], [["model"]], {"model": True}]
)
def test_a_protocol_whose_blinding_is_not_clear_is_refused(tmp_path, blind):
    """A typing error must not show what was to be hidden."""
    path = tmp_path / "protocol.json"
    path.write_text(json.dumps({"name": "study", "blind": blind}))
    with pytest.raises(FormatError, match="'blind' of the protocol"):
        read_protocol(path)


def test_the_words_say_what_is_hidden():
    assert Blinding.of(["reference"]).text == "Blind: reference is hidden"
    assert Blinding.of(["numbers"]).text == "Blind: numbers are hidden"
    assert NOT_BLIND.text == ""
    assert np.all([part.value in STUDY_HIDDEN.text for part in Hidden])
