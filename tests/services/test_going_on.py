"""A saved mask that is opened again: its strokes count on where the journal proves them."""

from dataclasses import replace

import numpy as np
import pytest
from tests.services.painting import GRID, make_case, make_images, random_act

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import open_editing, prepare_saving, save_editing
from napari_mamamia.services.refine.grow_mask import (
    GROW_AGAIN,
    GROW_STEP,
    GrownBefore,
    GrowthKind,
    choose_growth,
    merge_grown,
    recall_growth,
    seeds_without_growth,
    without_outlines,
)
from napari_mamamia.services.refine.outlines import DrawnOutline, outline_step
from napari_mamamia.services.refine.replay import replay_journal
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages
from napari_mamamia.smartpaint.evidence import outlined
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.session.session import EditingSession

ADD = Brush(tool=Tool.EVIDENCE, radius_mm=3.0)
ERASE = Brush(tool=Tool.EVIDENCE, radius_mm=2.0, action=Action.ERASE)
SECOND = Brush(tool=Tool.EVIDENCE, radius_mm=2.0, label=2)
FIRST, NEXT, FAR = (3.0, 8.0, 8.0), (3.0, 5.0, 8.0), (3.0, 14.0, 14.0)
FORGOTTEN = "strokes of earlier sessions are no longer used"


@pytest.fixture(scope="module")
def case():
    return make_case()


@pytest.fixture(scope="module")
def images(case):
    return make_images(case)


@pytest.fixture
def opened(tmp_path, case, images):
    left = []

    def make(folder="workspace"):
        editing = open_editing(case, Workspace(tmp_path / folder), "Ana", images=images)
        left.append(editing)
        return editing

    yield make
    for editing in left:
        editing.close()


def draw(editing, *strokes):
    for place, brush in strokes:
        editing.session.press(place, brush)
        editing.session.release()


def said(session):
    """The labels, and what strokes said of two labels, as copies."""
    words = (session.state.words(label) for label in (1, 2))
    return [array.copy() for array in (session.labels, *words)]


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def crash(editing):
    editing.journal._lines._release_handle()
    editing.journal._lines = None
    editing.session.on_record = None


EARLY = ((FIRST, ADD), (NEXT, ERASE), (FAR, SECOND))


def test_strokes_after_saving_and_opening_again_do_what_they_do_without(opened, tmp_path, case):
    there = opened("never closed")
    draw(there, *EARLY, (NEXT, ADD), (FIRST, ERASE))
    for place, brush in (*EARLY, (NEXT, ADD), (FIRST, ERASE)):
        editing = opened()
        assert editing.recovered is None
        draw(editing, (place, brush))
        saved = save_editing(editing)
        editing.close()
    again = opened()
    assert (again.recovered, again.notes) == (None, ())
    assert equal(said(again.session), said(there.session))
    assert said(again.session)[1].any()
    assert len(again.session.steps) == 5
    again.close()
    replay = replay_journal(saved.path.with_name("A.journal"), tmp_path / "A.nii.gz", case)
    assert (replay.n_strokes, replay.n_repeated, replay.is_whole) == (5, 5, True)


@pytest.mark.parametrize("seed", range(6))
def test_any_sitting_goes_on_with_labels_marks_and_history_to_the_bit(opened, seed):
    rng = np.random.default_rng(seed)
    editing = opened()
    for _ in range(25):
        random_act(editing.session, rng)
    save_editing(editing)
    editing.close()
    before, steps = said(editing.session), editing.session.steps
    again = opened()
    assert equal(said(again.session), before)
    assert [step.name for step in again.session.steps] == [step.name for step in steps]
    while again.session.can_undo:
        again.session.go_to(again.session.position - 1)
    assert not any(array.any() for array in said(again.session))


def test_a_second_lesion_keeps_its_marks_and_an_undo_goes_back_before_the_closing(opened):
    editing = opened()
    draw(editing, *EARLY[:2])
    before = said(editing.session)
    draw(editing, EARLY[2])
    save_editing(editing)
    editing.close()
    again = opened()
    assert said(again.session)[2].any()
    again.session.undo()
    assert equal(said(again.session), before)


def test_back_to_the_saved_mask_takes_the_marks_of_what_was_left_with_it(opened):
    editing = opened()
    draw(editing, *EARLY)
    saving = prepare_saving(editing)
    before = said(editing.session)
    draw(editing, (NEXT, ADD))  # while the file is written
    saving()
    draw(editing, (FIRST, ERASE), (FAR, ERASE))
    late = said(editing.session)
    crash(editing)
    again = opened()
    assert equal(said(again.session), late)
    again.back_to_saved()
    assert equal(said(again.session), before)
    again.close()
    assert equal(said(opened().session), before)


def test_a_mask_that_something_else_wrote_begins_without_marks_and_it_is_said(opened, case):
    editing = opened()
    draw(editing, *EARLY)
    saved = save_editing(editing)
    editing.close()
    crop = np.ones((2, 3, 3), np.uint8)
    labels = LabelMap(case.grid, Box((1, 2, 2), (3, 5, 5)), crop).dense()
    write_volume(labels, case.grid, saved.path, overwrite=True)
    again = opened()
    assert FORGOTTEN in " ".join(again.notes)
    assert not any(array.any() for array in said(again.session)[1:])


@pytest.mark.parametrize("how", ["removed", "damaged"])
def test_without_a_whole_journal_the_mask_begins_without_marks_and_it_is_said(opened, how):
    editing = opened()
    draw(editing, *EARLY)
    saved = save_editing(editing)
    editing.close()
    path = saved.path.with_name("A.journal")
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(b"".join((lines[0], lines[1].replace(b'"n":1', b'"n":7'), *lines[2:])))
    again = opened()
    assert FORGOTTEN in " ".join(again.notes)
    assert np.array_equal(again.session.labels, editing.session.labels)
    assert not any(array.any() for array in said(again.session)[1:])


# ---------------------------------------------------------------- what was grown


def blob(box):
    return box, np.ones(box.shape, np.bool_)


def lay_outline(live, before, axis, index, box):
    outline = DrawnOutline(axis, index, box, np.ones(box.shape, np.bool_))
    grown = None if before is None else (before.box, before.added)
    live.apply(*outline_step(live.labels, outline, live.label, Action.ADD, grown))


def lay_growth(live, before, box):
    """As the window does it."""
    seeds = seeds_without_growth(live, before)
    grown = Grown(*blob(box), ())
    where, mask, added = merge_grown(live.labels, live.label, grown, before, live.grid)
    live.apply("grow (1 outline)", where, mask)
    step = live.steps[live.position - 1]
    return GrownBefore(step, where, without_outlines(where, added, seeds))


def test_what_growing_added_is_known_from_the_history_alone():
    grid = Grid((9, 20, 20), np.eye(4))
    live = EditingSession("A", grid, np.zeros(grid.shape, np.uint8), None)
    assert recall_growth(live) is None
    rng = np.random.default_rng(3)
    before = None
    for act in "ogoogoagog":
        low = rng.integers((1, 1, 1), (4, 9, 9))
        high = low + rng.integers((2, 3, 3), (5, 11, 11))
        if act == "o":
            high[0] = low[0] + 1
            lay_outline(live, before, 0, int(low[0]), Box(tuple(low), tuple(high)))
        elif act == "g":
            before = lay_growth(live, before, Box(tuple(low), tuple(high)))
        else:
            box = Box(tuple(low), tuple(high))
            live.apply(GROW_AGAIN, box, np.ones(box.shape, np.bool_))
        found = recall_growth(live)
        if before is None:
            assert found is None
            continue
        assert found.step is before.step
        later = seeds_without_growth(live, before)
        assert all(
            np.array_equal(a.mask, b.mask)
            for a, b in zip(later, seeds_without_growth(live, found), strict=True)
        )


def test_a_session_grows_with_a_further_outline_what_it_would_grow_anew(monkeypatch):
    """As the window does it; outlines that were grown before are not grown without the newest."""
    grid = Grid((16, 30, 30), np.eye(4))
    z, y, x = np.indices(grid.shape)
    lesion = (z - 8) ** 2 + (y - 15) ** 2 + (x - 15) ** 2 <= 36
    signal = np.random.default_rng(1).normal(0, 1, grid.shape) + 6 * lesion
    case = Case("A", grid, signal[np.newaxis].astype(np.float32), (Phase(0),))
    images = FeatureImages(case, (Channel("image", 0, None, 1.0),))
    live = EditingSession("A", grid, np.zeros(grid.shape, np.uint8), images)
    n_grown = []
    grow_start = outlined.grow_start
    monkeypatch.setattr(
        outlined, "grow_start", lambda *args: n_grown.append(1) or grow_start(*args)
    )
    before: dict[int, GrownBefore] = {}
    costs = []
    # back on a plane, another lesion, and back
    for label, index in ((1, 8), (1, 5), (1, 11), (2, 8), (1, 5), (1, 9)):
        live.label = label
        crop = np.s_[8:23, 8:16] if label == 1 else np.s_[8:23, 16:23]
        low, high = (index, crop[0].start, crop[1].start), (index + 1, crop[0].stop, crop[1].stop)
        drawn = DrawnOutline(0, index, Box(low, high), lesion[index][crop][np.newaxis])
        then = before.get(label)
        added = None if then is None else (then.box, then.added)
        live.apply(*outline_step(live.labels, drawn, label, Action.ADD, added))
        seeds = seeds_without_growth(live, then)
        n_grown.clear()
        grown = outlined.grow_outlines(live.images, live.grid, seeds)
        costs.append(len(n_grown))
        anew = outlined.grow_outlines(replace(images), live.grid, seeds)
        assert (grown.box, grown.notes) == (anew.box, anew.notes)
        np.testing.assert_array_equal(grown.mask, anew.mask)
        where, mask, more = merge_grown(live.labels, label, grown, then, live.grid)
        live.apply(GROW_STEP, where, mask)
        step = live.steps[live.position - 1]
        before[label] = GrownBefore(step, where, without_outlines(where, more, seeds))
    assert costs[0] == 1
    assert costs[1] <= 2
    assert costs[2] <= 3


def test_a_mask_with_strokes_has_no_growth_to_take_the_place_of():
    live = EditingSession("A", GRID, np.zeros(GRID.shape, np.uint8), None)
    lay_outline(live, None, 0, 3, Box((3, 4, 4), (4, 9, 9)))
    lay_growth(live, None, Box((2, 4, 4), (5, 9, 9)))
    assert recall_growth(live) is not None
    live.press(FIRST, Brush(tool=Tool.SPHERE, radius_mm=2.0))
    live.release()
    assert recall_growth(live) is None
    live.undo()
    assert recall_growth(live).added.any()


def test_each_lesion_grows_from_its_own_outlines(opened):
    """Lesion 2 reaches through the slice on which lesion 1 is outlined; each goes on as it was."""
    editing = opened()
    live = editing.session
    lay_outline(live, None, 0, 3, Box((3, 1, 1), (4, 4, 4)))
    first = lay_growth(live, None, Box((2, 1, 1), (5, 5, 5)))
    live.label = 2
    assert choose_growth(live) is GrowthKind.CLICK
    lay_outline(live, None, 0, 2, Box((2, 6, 6), (3, 9, 9)))
    second = lay_growth(live, None, Box((1, 6, 6), (5, 10, 10)))
    assert [seed.index for seed in seeds_without_growth(live, second)] == [2]
    # a part of lesion 2 that was removed says nothing of lesion 1
    live.apply("remove part", Box((1, 9, 9), (5, 10, 10)), np.zeros((4, 1, 1), np.bool_))
    assert choose_growth(live) is GrowthKind.EVIDENCE
    editing.close()
    for session in (live, opened().session):
        session.label = 1
        assert [step.label for step in session.steps] == [1, 1, 2, 2, 2]
        assert choose_growth(session) is GrowthKind.OUTLINES
        found = recall_growth(session)
        assert (found.step.name, found.added.sum()) == (first.step.name, first.added.sum())
        assert [seed.index for seed in seeds_without_growth(session, found)] == [3]
        # growing of lesion 1 is undone beneath the steps of lesion 2, then its outline
        second_lesion = session.labels == 2
        session.undo(1)
        assert recall_growth(session) is None
        assert [seed.index for seed in seeds_without_growth(session, None)] == [3]
        session.undo(1)
        assert choose_growth(session) is GrowthKind.CLICK
        session.redo(1)
        assert choose_growth(session) is GrowthKind.OUTLINES
        np.testing.assert_array_equal(session.labels == 2, second_lesion)


def test_a_step_of_the_whole_mask_is_one_of_every_lesion():
    live = EditingSession("A", GRID, np.zeros(GRID.shape, np.uint8), None)
    lay_outline(live, None, 0, 3, Box((3, 4, 4), (4, 9, 9)))
    live.apply_labels("prediction", LabelMap(GRID, Box((1, 1, 1), (2, 3, 3)), np.ones((1, 2, 2))))
    assert [step.label for step in live.steps] == [1, 0]
    for label in (1, 2):
        live.label = label
        assert choose_growth(live) is GrowthKind.EVIDENCE


def test_what_a_damaged_journal_gives_back_of_a_mask_never_saved_says_so_too(opened):
    editing = opened()
    draw(editing, *EARLY)
    crash(editing)
    path = editing.journal.path
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"n":2', b'"n":7', 1)
    path.write_bytes(b"".join(lines))
    again = opened()
    assert again.session.labels.any()
    assert FORGOTTEN in " ".join(again.notes)
    assert not any(array.any() for array in said(again.session)[1:])
