"""The robot reader of benchmarks/refine.py: where it presses, and how its figures are judged."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.evidence.stroke import window_mm
from napari_mamamia.smartpaint.session.session import EditingSession

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from refining import robot, starts, table, tools
from refining.robot import SteadyHand
from refining.scenes import Scene


@pytest.fixture
def scene():
    """Return a bright box of 8 x 16 x 16 mm in noise, voxels of 2 x 1 x 1 mm."""
    reference = np.zeros((12, 40, 40), dtype=np.bool_)
    reference[4:8, 12:28, 12:28] = True
    noise = np.random.default_rng(0).normal(0, 5, reference.shape)
    signal = (100 + 60 * reference + noise).astype(np.int16)[np.newaxis]
    case = Case("box", Grid(reference.shape, np.diag([1.0, 1.0, 2.0, 1.0])), signal, (Phase(0),))
    return Scene("box", ("phantom",), case, reference, measure_features(case))


def test_the_robot_presses_where_the_missing_part_is_deepest(scene):
    gesture = robot.next_gesture(scene, np.zeros_like(scene.reference), SteadyHand())
    assert gesture.action is Action.ADD
    assert gesture.depth_mm == pytest.approx(4.0)  # two slices of 2 mm
    assert scene.reference[tuple(round(n) for n in gesture.press)]
    assert gesture.press[0] == gesture.release[0]


def test_a_steady_hand_does_the_same_whatever_its_seed_and_another_one_does_not(scene):
    def scores(hand, steady):
        tool = tools.Sphere(scene, np.zeros_like(scene.reference))
        return robot.run_robot(scene, tool, hand, 3, sweeps=True, steady=steady).scores

    assert scores(1, True) == scores(2, True)
    assert scores(1, False) != scores(2, False)


def test_a_part_deeper_than_the_hand_is_unsteady_goes_before_a_larger_shallow_one(scene):
    mask = scene.reference.copy()
    mask[:, 11, :] = mask[:, 28, :] = True  # two sheets of 1 mm, 960 voxels
    mask[4:8, 18:22, 18:22] = False  # a hole of 64 voxels, 2 mm deep
    gesture = robot.next_gesture(scene, mask, SteadyHand())
    assert gesture.action is Action.ADD
    mask[4:8, 18:22, 18:22] = True
    assert robot.next_gesture(scene, mask, SteadyHand()).action is Action.ERASE


@pytest.mark.parametrize("thickness", [1, 2])
def test_a_sweep_within_the_wrong_part_does_not_leave_it(scene, thickness):
    """Around a lesion the farthest voxel of a shell lies beyond the lesion."""
    mask = np.zeros_like(scene.reference)
    mask[4:8, 12 - thickness : 28 + thickness, 12 - thickness : 28 + thickness] = True
    gesture = robot.next_gesture(scene, mask, SteadyHand(), within=True)
    assert gesture.action is Action.ERASE
    assert gesture.press != gesture.release
    places = np.rint(gesture.places(scene.spacing_mm, 0.25)).astype(int)
    assert not scene.reference[tuple(places.T)].any()
    assert mask[tuple(places.T)].all()


def test_in_a_slice_alone_a_part_is_as_deep_as_it_is_in_the_slice(scene):
    case = Case("slice", Grid((1, 40, 40), np.eye(4)), scene.case.signal[:, 5:6], (Phase(0),))
    reference = scene.reference[5:6]
    flat = replace(scene, case=case, reference=reference, images=measure_features(case))
    gesture = robot.next_gesture(flat, np.zeros_like(reference), SteadyHand())
    assert gesture.depth_mm == pytest.approx(8.0)


def test_nothing_wrong_is_no_gesture(scene):
    assert robot.next_gesture(scene, scene.reference, SteadyHand()) is None


def test_a_slip_lands_beside_the_wrong_part(scene):
    class Slipping(SteadyHand):
        def random(self):
            return 0.0

    mask = np.zeros_like(scene.reference)
    gesture = robot.next_gesture(scene, mask, Slipping())
    assert not scene.reference[tuple(round(n) for n in gesture.press)]


def test_the_extent_is_the_farthest_wrong_voxel_from_the_gesture(scene):
    gesture = robot.next_gesture(scene, np.zeros_like(scene.reference), SteadyHand(), sweeps=False)
    voxels = (np.argwhere(scene.reference) - gesture.press) * scene.spacing_mm
    assert gesture.extent_mm == pytest.approx(np.sqrt((voxels**2).sum(axis=1)).max())


@pytest.mark.parametrize("name", tools.TOOLS)
def test_each_tool_adds_where_something_is_missing(scene, name):
    tool = tools.TOOLS[name](scene, np.zeros_like(scene.reference))
    run = robot.run_robot(scene, tool, 11, 2, sweeps=True)
    assert run.scores[0] == 0
    assert run.scores[-1] > 0.3
    assert len(run.ms) == len(run.scores) - 1 >= 1


def test_two_evidence_strokes_in_vain_are_followed_by_one_sphere(scene):
    tool = tools.EvidenceBrush(scene, np.zeros_like(scene.reference))
    gesture = robot.next_gesture(scene, tool.mask, SteadyHand(), sweeps=False)
    tool.judge(0.0)
    tool.judge(0.0)
    tool.stroke(gesture)
    ball = tools.measure_distance(scene, gesture.press) <= tools.PLAIN_FACTOR * gesture.depth_mm
    assert np.array_equal(tool.mask, ball)
    tool.judge(-1.0)
    assert tool.n_in_vain == 0


@pytest.mark.parametrize("name", starts.STARTS)
def test_each_start_is_a_mask_of_the_scene_that_is_not_yet_right(scene, name):
    mask = starts.STARTS[name](scene)
    assert mask.shape == scene.reference.shape
    assert mask.dtype == np.bool_
    # A box around a box leaves nothing to be found.
    assert (mask != scene.reference).any() or name == "box"
    assert mask.any() == (name != "empty")


def test_true_outlines_lie_on_slices_of_the_lesion(scene):
    outlines = starts.draw_outlines(scene, 4, starts.TRUE_OUTLINE_MM)
    assert len({one.index for one in outlines}) == len(outlines) >= 3
    assert all(scene.reference[one.index].any() for one in outlines)


def row(tool, after_ten, start="empty", scene="a", ms=10.0):
    run = robot.Run([0.0, after_ten], [ms])
    return table.Row(scene, ("phantom",), start, tool, (run,), 10)


def verdict(figures, word):
    (one,) = (one for one in figures.judge() if word in one.title)
    return one


def test_a_scene_below_the_sphere_is_a_goal_missed():
    below = table.Figures([row("evidence", 0.90), row("sphere", 0.91)], {})
    assert not verdict(below, "below the plain sphere").holds
    level = table.Figures([row("evidence", 0.906), row("sphere", 0.91)], {})
    assert verdict(level, "below the plain sphere").holds


def test_a_dice_that_is_never_reached_counts_as_one_stroke_more_than_the_budget():
    figures = table.Figures([row("evidence", 0.86)], {})
    assert verdict(figures, "nothing: strokes").measured == "1 / 11"
    assert not verdict(figures, "nothing: strokes").holds


def test_a_loss_by_a_further_outline_is_named():
    losses = table.Figures([], {"brain1": [0.6, 0.86, 0.84], "b": [0.9, 0.9]})
    assert verdict(losses, "two true outlines").holds
    worst = verdict(losses, "worst loss")
    assert "brain1 by outline 3" in worst.title
    assert not worst.holds


def test_the_robots_evidence_strokes_are_those_of_a_session(scene):
    start = np.roll(scene.reference, 5, axis=2)
    tool = tools.EvidenceBrush(scene, start)
    labels = start.astype(np.uint8)
    session = EditingSession("box", scene.case.grid, labels, scene.images)
    rng, actions = np.random.default_rng(11), []
    while (gesture := robot.next_gesture(scene, tool.mask, rng)) and len(actions) < 3:
        radius = tools.radius_of(gesture, tools.EVIDENCE_FACTOR)
        brush = Brush(tool=Tool.EVIDENCE, action=gesture.action, radius_mm=radius)
        whole = gesture.extent_mm > tools.BEYOND * window_mm(brush)
        first, *others = gesture.places(scene.spacing_mm, radius / 4)
        session.press(first, replace(brush, whole=whole))
        for place in others:
            session.drag(place)
        session.release()
        tool.stroke(gesture)
        actions.append(gesture.action)
        assert np.array_equal(labels, tool.labels)
    assert {Action.ADD, Action.ERASE} <= set(actions)
    assert not np.array_equal(labels > 0, start)


def test_a_warning_counts_only_at_the_first_stroke():
    late = robot.Run([0.0, 0.5, 0.6], [1.0, 1.0], {"alike"}, warned_at=2)
    rows = [table.Row("a", ("invisible",), "empty", "evidence", (late,), 10)]
    assert not verdict(table.Figures(rows, {}), "without a warning").holds
    late.warned_at = 1
    assert verdict(table.Figures(rows, {}), "without a warning").holds
