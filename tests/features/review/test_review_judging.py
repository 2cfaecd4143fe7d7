"""A judge at a desk: who has a case, what two masks differ in, how a decision is called."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.review_study import made

from napari_mamamia.core.blinding import ALL_HIDDEN, Blinding, Hidden
from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import CaseError, FormatError, GridMismatchError
from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form, Term
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.rules.states import CaseState, ReadingView
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.judging import (
    PairedAnswer,
    ShownReading,
    decide_dispute,
    fuse_dispute,
    leave_out,
    list_differences,
    list_lesions,
    open_dispute,
    set_down,
)
from napari_mamamia.io.data_set.volumes import write_mask

GRID = Grid.of_spacing((3, 6, 20), (2.0, 1.0, 1.0))
LEFT, RIGHT = (1, slice(1, 5), slice(2, 8)), (1, slice(1, 5), slice(6, 12))


def mask_file(folder, *places, name="mask"):
    mask = np.zeros(GRID.shape, bool)
    for place in places:
        mask[place] = True
    path = folder / f"{name}.nii.gz"
    path.unlink(missing_ok=True)
    write_mask(Mask(GRID, mask, Provenance("A", Maker.READER, name)), path)
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def study(tmp_path):
    """A blind study of one case whose readings share 4 x 2 of 4 x 6 voxels each: Dice 1/3."""
    folder = made(tmp_path, cases=("A",), blinding=ALL_HIDDEN)
    for who, place in (("Ana", LEFT), ("Ben", RIGHT)):
        client = StudyClient(folder, who, tmp_path / who)
        client.hand_in(client.take_next(), mask_file(tmp_path, place, name=who), Draft())()
        client.close()
    return folder


@pytest.fixture
def client(study, tmp_path):
    return StudyClient(study, "Jo Judge", tmp_path / "jo")


def test_a_judge_sees_the_readings_without_names_and_nothing_else_that_is_hidden(client):
    dispute = open_dispute(client, "c0001")
    assert [one.name for one in dispute.readings] == ["Reader A", "Reader B"]
    assert dispute.because[0] == "Dice 0.333 below 0.7"
    assert dispute.blinding == Blinding(ALL_HIDDEN.hidden - {Hidden.OTHER_READERS})
    assert dispute.workspace.name == "1-judge"
    # 24 voxels of 2 mm3
    assert [one.volume_ml for one in dispute.readings] == pytest.approx([0.048, 0.048])
    assert client.session.refresh().case("c0001").state is CaseState.IN_ADJUDICATION


def test_two_judges_of_one_second_one_has_it_the_other_is_told(client, study, tmp_path):
    lead = StudyClient(study, "Lea Lead", tmp_path / "lea")
    open_dispute(client, "c0001")
    told = open_dispute(lead, "c0001")
    assert told.held.startswith("Jo Judge (")
    assert told.readings == ()


def shown(name, *places):
    array = np.zeros(GRID.shape, np.uint8)
    for place in places:
        array[place] = 1
    labels = LabelMap.of(array, GRID) if places else None
    return ShownReading(name, ReadingView(name), labels)


def test_differences_come_by_volume_or_by_how_far_they_reach():
    core = (1, slice(2, 4), slice(2, 6))
    first = shown("a", core, (1, slice(2, 4), slice(6, 9)))  # 2 x 3 voxels more, beside the core
    second = shown("b", core, (1, 0, 19))  # one voxel, far away
    by_volume = list_differences(first, second)
    assert [(one.is_in_first, one.volume_mm3) for one in by_volume] == [(True, 12.0), (False, 2.0)]
    # columns 6, 7, 8 lie 1, 2, 3 mm from column 5 of the other; (0, 19) from (2, 8): 2 and 11 mm
    distances = [one.distance_mm for one in by_volume]
    assert distances == pytest.approx([3.0, (2**2 + 11**2) ** 0.5])
    by_distance = list_differences(first, second, by_distance=True)
    assert [one.voxel for one in by_distance] == [(1, 0, 19), by_volume[0].voxel]


def test_a_mask_against_none_differs_everywhere_and_equal_ones_nowhere():
    (only,) = list_differences(shown("a", LEFT), shown("b"))
    assert (only.is_in_first, only.volume_mm3) == (True, 48.0)
    assert np.isnan(only.distance_mm)
    assert list_differences(shown("a", LEFT), shown("b", LEFT)) == ()
    assert list_differences(shown("a"), shown("b")) == ()


def described(name, places, answers):
    one = shown(name, *places)
    return replace(one, reading=one.reading._replace(answers=json.dumps(answers)))


def test_lesions_of_two_readings_stand_side_by_side_with_what_was_said_of_them():
    large, small = (1, slice(1, 5), slice(1, 7)), (1, slice(1, 3), slice(12, 14))
    lone = (1, 5, 19)
    first = described("a", (large, small), {"shape@1": "oval", "shape@2": "round", "x@3": "lost"})
    second = described(
        "b",
        ((1, slice(1, 3), slice(1, 4)), (1, slice(1, 5), slice(11, 15)), lone),
        {"shape@1": "round", "shape@2": "irregular", "note@1": {"text": "x"}},
    )
    form = Form(
        "f",
        fields=(
            Field(
                "shape",
                "Shape",
                FieldKind.SINGLE,
                FieldScope.LESION,
                terms=tuple(Term(one, one.upper()) for one in ("oval", "round", "irregular")),
            ),
        ),
    )
    table = list_lesions(first, second, form)
    assert (table.n_both, table.n_first, table.n_second, table.n_parts) == (2, 0, 1, 0)
    assert (table.lost_first, table.lost_second) == (("3",), ())
    alone, one, two = table.rows
    assert (alone.first, alone.second, alone.voxel) == ("", "3", (1, 5, 19))
    # the second's largest, 16 voxels, lies over the first's small one, 4 voxels
    assert [(row.first, row.second) for row in (one, two)] == [("1", "2"), ("2", "1")]
    assert one.dsc == pytest.approx(2 * 6 / (24 + 6))
    assert [row.answers for row in (one, two)] == [
        (PairedAnswer("Shape", "OVAL", "IRREGULAR"),),
        (PairedAnswer("Shape", "ROUND", "ROUND"),),
    ]
    assert [one.is_same for one in table.answers] == [False, True]


def test_masks_of_two_grids_have_no_table():
    other = LabelMap.of(np.ones((3, 6, 21), np.uint8), Grid.of_spacing((3, 6, 21), (2.0, 1.0, 1.0)))
    with pytest.raises(GridMismatchError):
        list_lesions(shown("a", LEFT), replace(shown("b"), labels=other))


def test_answers_that_are_taken_over_stay_with_their_lesions_and_what_is_lost_is_told(tmp_path):
    folder = made(tmp_path, cases=("A",))
    large, small = (1, slice(1, 5), slice(1, 7)), (1, slice(1, 3), slice(12, 14))
    answers = {"k@1": "a", "k@2": "b", "bpe": "mild"}
    for who, places in (("Ana", (large, small)), ("Ben", (small,))):
        reader = StudyClient(folder, who, tmp_path / who)
        mask = mask_file(tmp_path, *places, name=who)
        reader.hand_in(reader.take_next(), mask, Draft(answers if who == "Ana" else {}))()
        reader.close()
    client = StudyClient(folder, "Jo Judge", tmp_path / "jo")
    dispute = open_dispute(client, "c0001")
    ana = next(one for one in dispute.readings if one.name == "Ana")
    # the large one is none, the small one is larger, and the largest by now
    mask = mask_file(tmp_path, (1, slice(1, 5), slice(11, 17)), name="judge")
    decided = decide_dispute(client, dispute, mask, "because", ana)
    assert (decided.choice, decided.lost) == ("edited", ("1",))
    record = json.loads(client.session.refresh().case("c0001").decision.answers)
    ((name, ((z, y, x),)),) = record.pop("@lesions").items()
    assert record == {"k@2": "b", "bpe": "mild"}
    assert name == "2"
    assert z == 1
    assert y in range(1, 5)
    assert x in range(11, 17)


def decide(client, dispute, saved, consensus=None, reason="because"):
    return decide_dispute(client, dispute, saved, reason, "{}", consensus).choice


def test_a_reading_that_was_taken_as_it_is_keeps_its_file(client, tmp_path):
    dispute = open_dispute(client, "c0001")
    assert decide(client, dispute, mask_file(tmp_path, RIGHT, name="judge")) == "ben"
    decision = client.session.refresh().case("c0001").decision
    (ben,) = (one for one in dispute.readings if one.reading.reader == "ben")
    assert decision.mask == ben.reading.mask
    assert len(client.store.read().masks) == 2


def test_a_rule_is_the_choice_while_its_mask_was_not_changed(client, tmp_path):
    dispute = open_dispute(client, "c0001")
    union = fuse_dispute(client, dispute, ConsensusRule.UNION)
    assert decide(client, dispute, mask_file(tmp_path, LEFT, RIGHT, name="j"), union) == "union"
    assert not verify_study(client.store).problems


def test_a_rule_and_a_stroke_is_a_mask_of_ones_own_with_its_parents(client, tmp_path):
    dispute = open_dispute(client, "c0001")
    union = fuse_dispute(client, dispute, ConsensusRule.UNION)
    path, sha256 = mask_file(tmp_path, LEFT, RIGHT, (0, 0, 0), name="j")
    assert decide(client, dispute, (path, sha256), union) == "edited"
    assert client.session.refresh().case("c0001").decision.mask == sha256


def test_staple_of_two_is_refused_and_says_so(client):
    dispute = open_dispute(client, "c0001")
    assert dispute.why_not(ConsensusRule.STAPLE) == "needs 3 readings, but there are 2"
    assert dispute.why_not(ConsensusRule.UNION) == ""
    with pytest.raises(CaseError, match="at least 3 readings"):
        fuse_dispute(client, dispute, ConsensusRule.STAPLE)


def test_nothing_is_decided_without_a_reason_or_with_another_file(client, tmp_path):
    dispute = open_dispute(client, "c0001")
    path, sha256 = mask_file(tmp_path, LEFT, name="j")
    with pytest.raises(CaseError, match="reason"):
        decide(client, dispute, (path, sha256), reason=" ")
    with pytest.raises(FormatError, match="changed"):
        decide(client, dispute, (path, "0" * 64))
    assert client.session.refresh().case("c0001").state is CaseState.IN_ADJUDICATION


def test_a_case_that_was_set_down_goes_to_another_judge_who_may_leave_it_out(
    client, study, tmp_path
):
    dispute = open_dispute(client, "c0001")
    set_down(client, dispute)
    lead = StudyClient(study, "Lea Lead", tmp_path / "lea")
    taken = open_dispute(lead, "c0001")
    assert not taken.held
    set_down(lead, taken)
    with pytest.raises(CaseError, match="in adjudication"):
        decide(client, dispute, mask_file(tmp_path, LEFT, name="j"))
    leave_out(lead, open_dispute(lead, "c0001"), "motion")
    assert lead.session.refresh().case("c0001").state is CaseState.REJECTED


def test_a_reader_is_shown_nobody_elses_mask(study, tmp_path):
    ana = StudyClient(study, "Ana", tmp_path / "Ana")
    with pytest.raises(CaseError, match="masks are hidden"):
        open_dispute(ana, "c0001")


def test_a_mask_that_was_changed_in_the_store_is_not_shown(client, study):
    (first, *_) = sorted((study / "masks").glob("*.nii.gz"))
    first.chmod(0o600)
    first.write_bytes(b"another")
    with pytest.raises(FormatError, match="changed"):
        open_dispute(client, "c0001")
