"""An editing session: strokes, whole steps, undo and redo, and what others do to its buffer."""

import numpy as np
import pytest
from tests.halves import third_by_day

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Phase
from napari_mamamia.core.edits import Action, Brush, Jump, Sampling, Tool, Turn
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.session.session import PAINTED_OUTSIDE, EditingSession

SHAPE = (8, 24, 24)
GRID = Grid(SHAPE, np.diag([-1.0, 1.0, 2.0, 1.0]))
SPHERE = Brush(tool=Tool.SPHERE, radius_mm=4.0)
ERASER = SPHERE.inverted()
MIDDLE = (4.0, 12.0, 12.0)


def case():
    rng = np.random.default_rng(5)
    signal = rng.normal(100, 8, (3, *SHAPE))
    signal[1:, 2:6, 8:18, 8:18] += 90
    phases = tuple(Phase(k, time_s) for k, time_s in enumerate((0.0, 150.0, 450.0)))
    return Case("A", GRID, signal.astype(np.int16), phases)


@pytest.fixture(scope="module")
def images():
    return measure_features(case())


def session(images=None, **settings):
    return EditingSession("A", GRID, np.zeros(SHAPE, np.uint8), images, **settings)


def paint(edited, brush=SPHERE, *points):
    first, *others = points or (MIDDLE,)
    edited.press(first, brush)
    for point in others:
        edited.drag(point)
    return edited.release()


def state(edited):
    """All bytes that a step may change."""
    return edited.labels.tobytes(), *(edited.state.membership(n).tobytes() for n in (1, 2))


def random_brush(rng):
    def one_of(kind):
        return list(kind)[rng.integers(len(kind))]

    return Brush(
        tool=one_of(Tool),
        action=one_of(Action),
        radius_mm=float(rng.uniform(0.4, 6)),
        sampling=one_of(Sampling),
        label=int(rng.integers(1, 3)),
    )


@pytest.mark.parametrize("seed", third_by_day(range(30)))
def test_undo_restores_every_byte_and_redo_does_it_again(images, seed):
    rng = np.random.default_rng(seed)
    edited = session(images)
    states = [state(edited)]
    while len(states) < 7:
        points = rng.uniform((-1, -2, -2), (9, 26, 26), (4, 3))
        if paint(edited, random_brush(rng), *map(tuple, points)):
            states.append(state(edited))
    while edited.undo() is not None:
        assert state(edited) == states[edited.position]
    assert state(edited) == states[0]
    while edited.redo() is not None:
        assert state(edited) == states[edited.position]
    assert state(edited) == states[-1]
    edited.undo()
    before, position = state(edited), edited.position
    edited.press(MIDDLE, SPHERE)
    edited.release()
    edited.go_to(position)  # a step after an undo starts from what the undo left
    assert state(edited) == before


def test_a_sphere_of_4_mm_paints_the_voxels_within_its_circle():
    edited = session()
    box = edited.press(MIDDLE, SPHERE)
    edited.release()
    z, y, x = np.ogrid[tuple(slice(n) for n in SHAPE)]
    distance = np.sqrt((2.0 * (z - 4)) ** 2 + (y - 12) ** 2 + (x - 12) ** 2)
    assert (edited.labels[distance < 3.5] == 1).all()
    assert not edited.labels[distance > 4.0].any()
    assert box == Box.around(edited.labels)


def test_a_stroke_is_one_step_with_its_length_in_mm():
    edited = session()
    step = paint(edited, ERASER, MIDDLE)  # nothing to erase, but membership moves
    assert step is None or step.edit.changed_voxels == 0
    step = paint(edited, SPHERE, (4, 6, 12), (4, 9, 12), (4, 9, 16))
    assert step.edit.name == "paint 4 mm (sphere)"
    assert step.edit.path_mm == pytest.approx(3 + 4)
    assert step.edit.changed_voxels == np.count_nonzero(edited.labels)
    assert step.edit.stroke.path == ((4, 6, 12), (4, 9, 12), (4, 9, 16))


def test_an_abandoned_stroke_leaves_no_trace():
    edited = session()
    paint(edited)
    before = state(edited)
    edited.press((4, 6, 6), SPHERE)
    edited.drag((4, 6, 14))
    assert not edited.abandon().is_empty
    assert state(edited) == before
    assert len(edited.steps) == 1
    assert edited.release() is None


def test_locked_labels_are_never_painted_over():
    edited = session()
    paint(edited, Brush(tool=Tool.SPHERE, radius_mm=3.0, label=2))
    other = edited.labels == 2
    edited.locked = frozenset({2})
    paint(edited, Brush(tool=Tool.SPHERE, radius_mm=6.0))
    edited.apply("grow", Box.whole(SHAPE), np.ones(SHAPE, bool))
    assert ((edited.labels == 2) == other).all()
    assert (edited.labels[~other] == 1).all()
    edited.undo()
    edited.undo()
    assert ((edited.labels == 2) == other).all()


def test_a_locked_label_cannot_be_painted_and_the_message_says_what_to_do():
    edited = session(locked=frozenset({1}))
    with pytest.raises(CaseError, match="label 1 is locked: unlock it"):
        edited.press(MIDDLE, SPHERE)
    with pytest.raises(CaseError, match="locked"):
        edited.apply("grow", Box.whole(SHAPE), np.ones(SHAPE, bool))
    assert not edited.is_painting
    assert not edited.labels.any()


def test_undo_of_one_label_survives_painting_another(images):
    edited = session(images)
    paint(edited, Brush(Tool.SMARTPAINT, radius_mm=5.0, label=1))
    one = state(edited)
    paint(edited, Brush(Tool.SMARTPAINT, radius_mm=5.0, label=2), (4, 14, 14))
    edited.undo()
    assert state(edited) == one
    edited.undo()
    assert not any(map(any, state(edited)))


def test_a_brush_that_compares_needs_images_and_says_so():
    edited = session()
    with pytest.raises(CaseError, match="still being read: wait"):
        edited.press(MIDDLE, Brush(Tool.SMARTPAINT))
    assert not edited.is_painting
    box, turned = edited.preview(MIDDLE, Brush(Tool.SMARTPAINT))
    assert box.is_empty
    assert turned.size == 0


def test_the_preview_shows_what_a_press_then_paints_and_changes_nothing(images):
    edited = session(images)
    before = state(edited)
    box, turned = edited.preview(MIDDLE, Brush(Tool.SMARTPAINT, radius_mm=5.0))
    assert state(edited) == before
    paint(edited, Brush(Tool.SMARTPAINT, radius_mm=5.0))
    assert turned.any()
    assert (edited.labels[box.slices].astype(bool) == turned).all()


@pytest.mark.parametrize("point", [(-30, 5, 5), (4, 500, 5), (np.nan, 3, 3), (np.inf, 3, 3)])
def test_painting_beyond_the_border_changes_nothing(point):
    edited = session()
    assert edited.press(point, SPHERE).is_empty
    assert edited.release() is None
    assert edited.steps == ()


def test_painting_over_the_border_does_not_come_in_on_the_other_side():
    edited = session()
    paint(edited, SPHERE, (0, 0, 0))
    assert edited.labels[0, 0, 0] == 1
    assert not edited.labels[4:].any()
    assert not edited.labels[:, 12:].any()
    assert not edited.labels[:, :, 12:].any()


def test_a_volume_of_one_slice_can_be_painted():
    grid = Grid((1, 24, 24), GRID.affine)
    edited = EditingSession("A", grid, np.zeros((1, 24, 24), np.uint8), None)
    paint(edited, SPHERE, (0, 12, 12))
    assert edited.labels.any()
    edited.undo()
    assert not edited.labels.any()


def test_a_brush_smaller_than_a_voxel_paints_the_voxel_under_it():
    edited = session()
    paint(edited, Brush(tool=Tool.SPHERE, radius_mm=0.2))
    assert np.argwhere(edited.labels).tolist() == [[4, 12, 12]]


# ------------------------------------------------------------------ whole steps


def test_a_whole_step_sets_and_clears_its_label_inside_the_box_only():
    edited = session()
    edited.labels[:, :4] = 1
    edited.notice_external()
    box = Box((2, 2, 2), (6, 8, 8))
    mask = np.zeros(box.shape, bool)
    mask[:, 4:] = True
    edited.apply("grow (1 outline)", box, mask, (("tv weight", 1.5),))
    assert not edited.labels[3, 3, 3]
    assert edited.labels[3, 7, 3] == 1
    assert edited.labels[0, 3, 3] == 1
    assert edited.steps[-1].parameters == (("tv weight", 1.5),)
    assert edited.steps[-1].tool == "grow"


def test_a_step_that_changes_nothing_is_no_step():
    edited = session()
    assert edited.apply("islands", Box.whole(SHAPE), np.zeros(SHAPE, bool)) is None
    assert edited.apply_labels("nothing", LabelMap(GRID, Box.empty(), np.zeros((0, 0, 0)))) is None
    assert edited.undo() is None
    assert edited.redo() is None
    assert edited.steps == ()


def test_a_whole_mask_replaces_all_labels_as_one_step():
    edited = session()
    paint(edited)
    crop = np.array([[[2, 1]]], np.uint8)
    edited.apply_labels("prediction kinetic", LabelMap(GRID, Box((0, 0, 0), (1, 1, 2)), crop))
    assert edited.labels[0, 0, :2].tolist() == [2, 1]
    assert np.count_nonzero(edited.labels) == 2
    edited.undo()
    assert np.count_nonzero(edited.labels == 1) == edited.steps[0].changed_voxels


def test_a_mask_of_another_shape_than_its_box_is_refused():
    with pytest.raises(CaseError, match="shape"):
        session().apply("grow", Box.whole(SHAPE), np.ones((2, 2, 2), bool))


# ------------------------------------------------------------- others' painting


def test_what_napari_painted_becomes_a_step_that_can_be_undone():
    edited = session()
    paint(edited)
    mine = edited.labels.copy()
    edited.labels[1, 2:5, 2:5] = 3
    assert edited.notice_external().edit.name == PAINTED_OUTSIDE
    edited.undo()
    assert (edited.labels == mine).all()
    edited.undo()
    assert not edited.labels.any()


def test_undo_first_records_what_nobody_told_of():
    edited = session()
    paint(edited)
    edited.labels[4, 10:14, 10:14] = 3
    edited.undo()
    assert (np.unique(edited.labels) == (0, 1)).all()
    assert [edit.name for edit in edited.steps] == ["paint 4 mm (sphere)", PAINTED_OUTSIDE]


def test_where_napari_painted_the_label_counts_as_095_not_as_the_old_membership(images):
    brush = Brush(Tool.SMARTPAINT, radius_mm=5.0)
    edited, fresh = session(images), session(images)
    paint(edited, brush.inverted())  # leaves membership far below 0.05
    for each in (edited, fresh):
        each.labels[2:6, 8:18, 8:18] = 1
        each.notice_external()
        paint(each, brush.inverted(), (4, 12, 13))
    assert (edited.labels == fresh.labels).all()


# --------------------------------------------------------------------- records


def test_every_step_and_turn_is_handed_on_in_order():
    edited, seen = session(), []
    edited.on_record = seen.append
    paint(edited)
    paint(edited, SPHERE, (2, 5, 5))
    edited.undo()
    edited.redo()
    assert [getattr(record, "number", record) for record in seen] == [1, 2, Turn.UNDO, Turn.REDO]


def test_a_faint_dab_is_undone_together_with_the_step_before_it(images):
    edited = session(images)
    paint(edited, SPHERE)
    paint(edited, SPHERE)  # moves nothing over the threshold
    assert edited.undo() is not None
    assert not edited.labels.any()


def hidden_between(images):
    """Paint, two strokes that move membership but no voxel, paint: the state of each row."""
    edited, seen = session(images), []
    edited.on_record = seen.append
    states = [state(edited)]
    for brush, place in (
        (SPHERE, MIDDLE),
        (ERASER, (4, 4, 4)),
        (ERASER, (4, 5, 5)),
        (SPHERE, (2, 18, 18)),
    ):
        paint(edited, brush, place)
        states.append(state(edited))
    assert [step.changed_voxels > 0 for step in edited.steps] == [True, False, False, True]
    seen.clear()
    return edited, seen, states


@pytest.mark.parametrize("row", range(4))
def test_a_row_of_steps_that_changed_no_voxel_is_reached_in_one_act(images, row):
    edited, seen, states = hidden_between(images)
    edited.go_to(row)
    assert (edited.position, state(edited), seen) == (row, states[row], [Jump(4, row)])
    edited.go_to(4)
    assert (state(edited), seen) == (states[4], [Jump(4, row), Jump(row, 4)])


@pytest.mark.parametrize("seed", third_by_day(range(10)))
def test_every_row_is_reached_from_every_other_to_the_last_byte(images, seed):
    rng = np.random.default_rng(seed)
    edited = session(images, limit_bytes=4000)
    steps, states = {}, [state(edited)]
    edited.on_record = lambda record: steps.setdefault(getattr(record, "number", 0), record)
    edited.history.read_back = lambda number: steps[number].difference
    for _ in range(7):
        if paint(edited, random_brush(rng), *map(tuple, rng.uniform((0, 0, 0), SHAPE, (3, 3)))):
            states.append(state(edited))
    for row in (*rng.permutation(len(states)), *rng.permutation(len(states))):
        edited.go_to(int(row))
        assert (edited.position, state(edited)) == (row, states[row])
    edited.go_to(1)
    edited.undo()
    assert state(edited) == states[0]


def test_going_to_the_row_where_one_is_leaves_no_record(images):
    edited, seen, _ = hidden_between(images)
    assert edited.go_to(4).is_empty
    assert seen == []


def test_the_box_of_a_jump_holds_every_voxel_that_changed(images):
    edited, _, _ = hidden_between(images)
    before = edited.labels.copy()
    assert edited.go_to(1) == Box.around(before != edited.labels)


def test_a_way_that_was_overtaken_by_another_act_is_not_gone(images):
    edited, seen, _ = hidden_between(images)
    way = edited.prepare_jump(1)
    while way.gather():
        pass
    paint(edited, SPHERE, (6, 6, 18))
    now = state(edited)
    assert edited.go(way) is None
    assert (edited.position, state(edited), len(seen)) == (5, now, 1)


@pytest.mark.parametrize("row", [-1, 5])
def test_a_row_that_is_not_there_is_refused_and_nothing_changes(images, row):
    edited, seen, states = hidden_between(images)
    with pytest.raises(CaseError, match="expected the row of the history to be from 0 to 4"):
        edited.go_to(row)
    assert (edited.position, state(edited), seen) == (4, states[4], [])


def test_a_row_beyond_what_memory_holds_is_refused_and_nothing_changes(images):
    edited, seen, states = hidden_between(images)
    edited.history.limit_bytes = 1
    with pytest.raises(CaseError, match="no journal recorded it"):
        edited.go_to(0)
    assert (edited.position, state(edited), seen) == (4, states[4], [])


def test_a_jump_back_counts_the_steps_that_it_undid(images):
    edited, _, _ = hidden_between(images)
    edited.go_to(1)
    edited.go_to(3)
    assert edited.summary.undos == 3


def test_a_jump_that_does_not_fit_the_history_is_not_played(images):
    edited, _, states = hidden_between(images)
    for jump in (Jump(3, 1), Jump(4, 9), Jump(4, -1)):
        with pytest.raises(ValueError, match="the history is at row 4 of 4"):
            edited.play(jump)
    assert state(edited) == states[4]


def test_pauses_of_half_a_minute_do_not_count_as_editing():
    times = iter([0.0, 2.0, 100.0, 101.0, 120.0, 121.0])
    edited = session(now=lambda: next(times))
    paint(edited)  # press at 0, release at 2
    paint(edited, SPHERE, (2, 5, 5))  # press at 100: 98 s of pause; release at 101
    paint(edited, SPHERE, (6, 18, 18))  # press at 120, release at 121
    assert edited.summary.seconds == pytest.approx(2 + 1 + 19 + 1)
    assert [edit.at_s for edit in edited.steps] == [2.0, 3.0, 23.0]


def test_the_summary_counts_strokes_tools_and_undone_steps():
    edited = session()
    paint(edited, SPHERE, (4, 6, 6), (4, 6, 16))
    edited.apply("fill holes", Box.whole(SHAPE), np.ones(SHAPE, bool))
    edited.undo()
    summary = edited.summary
    assert (summary.strokes, summary.steps, summary.undos) == (1, 1, 1)
    assert summary.path_mm == pytest.approx(10)
    assert summary.tools == ("sphere", "fill holes")


def test_start_labels_stay_what_the_session_began_with():
    buffer = np.zeros(SHAPE, np.uint8)
    buffer[1:3, 4:6, 4:6] = 2
    edited = EditingSession("A", GRID, buffer, None)
    paint(edited, ERASER, (2, 5, 5))
    assert edited.start_labels.values == (2.0,)
    assert edited.start_labels.box == Box((1, 4, 4), (3, 6, 6))


@pytest.mark.parametrize("place", [(0, 0, 0), (2, 7, 3), (4, 10, 10)])
def test_one_voxel_painted_from_outside_is_noticed_wherever_it_lies(place):
    # 5 x 11 x 11 is no multiple of the eight bytes that are compared at a time
    labels = np.zeros((5, 11, 11), np.uint8)
    session = EditingSession("A", Grid((5, 11, 11), np.eye(4)), labels, None)
    assert session.notice_external() is None
    labels[place] = 1
    assert session.notice_external().difference.changed_voxels == 1
    assert session.notice_external() is None


def test_a_jump_of_the_pointer_is_written_into_its_stroke():
    labels = np.zeros((5, 11, 11), np.uint8)
    session = EditingSession("A", Grid((5, 11, 11), np.eye(4)), labels, None)
    session.press((2.0, 5.0, 5.0), Brush(tool=Tool.SPHERE, radius_mm=2.0))
    session.drag((2.0, 5.0, 5e7))
    assert dict(session.release().edit.parameters) == {"places left out": 1}
