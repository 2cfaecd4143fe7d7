"""A stroke of evidence on images, masks, paths and circles that nobody would draw on.

Of each: no exception; (a) nothing changes beyond the window; (b) adding never removes, erasing
never adds; (c) what was erased inside the circle is not brought back by a stroke elsewhere; (d) the
same bits twice and in a thread. Other and locked labels are never touched.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.halves import half_by_day

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.evidence.stroke import (
    prepare_stroke,
    preview_stroke,
    settle_stroke,
)
from napari_mamamia.smartpaint.parts import without_fragments

SHAPE, SPACING = (10, 40, 40), (2.5, 1.0, 1.0)
MIDDLE = (5.0, 20.0, 20.0)
CORNER = (0.0, 0.0, 0.0)


def ball(centre, radius_mm, shape=SHAPE):
    places = np.indices(shape)
    return sum(((places[k] - centre[k]) * SPACING[k]) ** 2 for k in range(3)) <= radius_mm**2


def sprinkle(signal, share, value, seed):
    sprinkled = signal.copy()
    sprinkled[np.random.default_rng(seed).random(signal.shape) < share] = value
    return sprinkled


SIGNALS = {
    "plain": lambda signal: signal,
    "nan": lambda signal: np.full_like(signal, np.nan),
    "some nan": lambda signal: sprinkle(signal, 0.3, np.nan, 1),
    "inf": lambda signal: sprinkle(sprinkle(signal, 0.1, np.inf, 2), 0.1, -np.inf, 3),
    "equal": lambda signal: np.full_like(signal, 7.0),
    "zeros": np.zeros_like,
    "huge": lambda signal: signal * np.float32(1e34),
    "tiny": lambda signal: signal * np.float32(1e-38),
    "two values": lambda signal: (signal > 200).astype(np.float32),
    "uint16": lambda signal: np.clip(signal, 0, None).astype(np.uint16),
    "uint16 full": lambda signal: (signal * 1e6).astype(np.int64).astype(np.uint16),
    "int16": lambda signal: (signal - 200).astype(np.int16),
    "float64": lambda signal: signal.astype(np.float64),
}


def make_signal(kind, shape=SHAPE):
    noise = np.random.default_rng(5).normal(100, 10, shape)
    return SIGNALS[kind]((noise + 150 * ball(MIDDLE, 8.0, shape)).astype(np.float32))


def images_of(signal, noise=10.0, n_channels=1):
    grid = Grid(signal.shape, np.diag([*SPACING[::-1], 1.0]))
    phases = np.stack([signal] * max(n_channels, 1))
    case = Case("A", grid, phases, tuple(Phase(k) for k in range(len(phases))))
    channels = tuple(Channel(f"image {k}", k, None, noise) for k in range(n_channels))
    return FeatureImages(case, channels)


def brush_of(action=Action.ADD, radius_mm=6.0, whole=False, label=1):
    return Brush(tool=Tool.EVIDENCE, action=action, radius_mm=radius_mm, whole=whole, label=label)


def distance_to(path, shape):
    """Return the distance in mm of each voxel from the path, slowly: from each of its points."""
    places = np.indices(shape)
    nearest = np.full(shape, np.inf)
    for point in path:
        squares = sum(((places[k] - point[k]) * SPACING[k]) ** 2 for k in range(3))
        nearest = np.minimum(nearest, np.sqrt(squares))
    return nearest


def work_of(images, labels, words, brush, path, locked=frozenset()):
    return prepare_stroke(images, labels, words, brush, path, locked)


def check_stroke(images, labels, words, brush, path, locked=frozenset()):
    """Settle a stroke, hold it to its contract, and lay it in; return what it changed."""
    before, words_before = labels.copy(), words.copy()
    settled = settle_stroke(work_of(images, labels, words, brush, path, locked))
    again = settle_stroke(work_of(images, labels, words, brush, path, locked))
    with ThreadPoolExecutor(1) as pool:
        work = work_of(images, labels, words, brush, path, locked)
        elsewhere = pool.submit(settle_stroke, work).result()
    for other in (again, elsewhere):
        assert other.box == settled.box
        np.testing.assert_array_equal(other.labels, settled.labels)
        np.testing.assert_array_equal(other.words, settled.words)
    preview_stroke(work_of(images, labels, words, brush, path, locked))
    # Nothing was written where it was read.
    np.testing.assert_array_equal(labels, before)
    np.testing.assert_array_equal(words, words_before)
    labels[settled.box.slices] = settled.labels
    words[settled.box.slices] = settled.words
    changed = labels != before
    if not brush.whole:
        reach = 1.6 * brush.radius_mm + 4.0
        assert not changed[distance_to(path, labels.shape) > reach + 1e-3].any()
    was, now = before == brush.label, labels == brush.label
    if brush.action is Action.ADD:
        assert not (was & ~now).any()
    else:
        assert not (now & ~was).any()
    others = (before != 0) & (before != brush.label)
    if brush.action is Action.ERASE:
        assert not changed[others].any()
    for label in locked:
        np.testing.assert_array_equal(labels == label, before == label)
    return changed


def blank(shape=SHAPE):
    return np.zeros(shape, np.uint8), np.zeros(shape, np.uint16)


ACTIONS = (Action.ADD, Action.ERASE)


@pytest.mark.parametrize(("kind", "action"), product(SIGNALS, ACTIONS))
def test_no_image_breaks_a_stroke(kind, action):
    labels, words = blank()
    labels[ball((5, 20, 14), 6.0)] = 1
    check_stroke(images_of(make_signal(kind)), labels, words, brush_of(action), (MIDDLE,))


@pytest.mark.parametrize("noise", [0.0, 1e-30, 1e30, np.inf, -np.inf, np.nan, -1.0])
def test_no_noise_breaks_a_stroke(noise):
    labels, words = blank()
    check_stroke(images_of(make_signal("plain"), noise), labels, words, brush_of(), (MIDDLE,))


@pytest.mark.parametrize("noise", [0.0, np.inf, np.nan])
def test_a_feature_whose_noise_is_no_number_is_left_out_and_it_is_said(noise):
    images = images_of(make_signal("plain"), n_channels=3)
    first, second, third = images.channels
    odd = replace(images, channels=(first, replace(second, noise=noise), third))
    assert odd.names == ("image 0", "image 2")
    assert odd.missing == ("the noise of image 1 is unknown: the brush ignores it",)
    assert images.missing == ()
    labels, words = blank()
    assert check_stroke(odd, labels, words, brush_of(), (MIDDLE,)).any()


@pytest.mark.parametrize("n_channels", [1, 2, 3])
def test_as_many_features_as_there_are_serve(n_channels):
    labels, words = blank()
    images = images_of(make_signal("plain"), n_channels=n_channels)
    assert check_stroke(images, labels, words, brush_of(), (MIDDLE,)).any()


@pytest.mark.parametrize(
    "shape", [(1, 40, 40), (2, 40, 40), (10, 1, 40), (10, 40, 1), (1, 1, 40), (1, 1, 1)]
)
@pytest.mark.parametrize("action", ACTIONS)
def test_one_slice_one_row_and_one_voxel_are_images_too(shape, action):
    labels, words = blank(shape)
    if action is Action.ERASE:
        labels[...] = 1
    path = (tuple(float(min(v, n - 1)) for v, n in zip(MIDDLE, shape, strict=True)),)
    images = images_of(make_signal("plain", shape))
    assert check_stroke(images, labels, words, brush_of(action), path).any()


@pytest.mark.parametrize("radius_mm", half_by_day([0.5, 1.0, 2.5, 15.0, 60.0, 30.0]))
@pytest.mark.parametrize(("action", "whole"), product(ACTIONS, (False, True)))
def test_circles_of_half_a_voxel_to_beyond_the_image(radius_mm, action, whole):
    labels, words = blank()
    labels[ball((5, 20, 16), 7.0)] = 1
    brush = brush_of(action, radius_mm, whole)
    check_stroke(images_of(make_signal("plain")), labels, words, brush, (MIDDLE,))


@pytest.mark.parametrize("place", [CORNER, (9.0, 39.0, 39.0), (0.0, 20.0, 39.0), (9.0, 0.0, 0.0)])
@pytest.mark.parametrize("action", ACTIONS)
def test_the_border_of_the_image(place, action):
    labels, words = blank()
    labels[...] = action is Action.ERASE
    images = images_of(make_signal("plain"))
    assert check_stroke(images, labels, words, brush_of(action), (place,)).any()


@pytest.mark.parametrize(
    "path",
    [
        ((-0.4, -0.4, -0.4),),
        ((-5.0, 20.0, 20.0), MIDDLE),
        (MIDDLE, (5.0, 20.0, 400.0)),
        ((500.0, 500.0, 500.0),),
        ((-1e6, 0.0, 0.0), (1e6, 0.0, 0.0)),
    ],
)
def test_points_outside_the_image(path):
    labels, words = blank()
    images = images_of(make_signal("plain"))
    settled = settle_stroke(work_of(images, labels, words, brush_of(), path))
    assert settled.labels.shape == settled.box.shape
    assert not (settled.labels[settled.labels > 0] != 1).any()


def test_a_path_of_ten_thousand_points():
    turns = np.linspace(0, 60 * np.pi, 10_000)
    path = tuple((5.0, 20 + 6 * np.sin(t), 20 + 6 * np.cos(t)) for t in turns)
    labels, words = blank()
    images = images_of(make_signal("plain"))
    settled = settle_stroke(work_of(images, labels, words, brush_of(radius_mm=3.0), path))
    again = settle_stroke(work_of(images, labels, words, brush_of(radius_mm=3.0), path))
    np.testing.assert_array_equal(settled.labels, again.labels)
    labels[settled.box.slices] = settled.labels
    assert not labels[distance_to(path[::50], SHAPE) > 1.6 * 3.0 + 4.0 + 0.5].any()


def test_a_path_that_stands_still():
    labels, words = blank()
    images = images_of(make_signal("plain"))
    once = check_stroke(images, *blank(), brush_of(), (MIDDLE,))
    often = check_stroke(images, labels, words, brush_of(), (MIDDLE,) * 500)
    np.testing.assert_array_equal(once, often)


@pytest.mark.parametrize(("fill", "action"), product((0, 1), ACTIONS))
def test_an_empty_and_a_full_mask(fill, action):
    labels, words = blank()
    labels[...] = fill
    changed = check_stroke(
        images_of(make_signal("plain")), labels, words, brush_of(action), (MIDDLE,)
    )
    assert changed.any() == (fill == (action is Action.ERASE))


@pytest.mark.parametrize(("action", "whole"), product(ACTIONS, (False, True)))
def test_labels_all_around_that_are_locked_stay(action, whole):
    labels, words = blank()
    labels[...] = 2
    labels[ball(MIDDLE, 5.0)] = 1
    images = images_of(make_signal("plain"))
    brush = brush_of(action, 9.0, whole)
    check_stroke(images, labels, words, brush, (MIDDLE,), frozenset({2}))


@pytest.mark.parametrize("action", ACTIONS)
def test_every_label_of_the_byte_around(action):
    labels, words = blank()
    labels[...] = np.random.default_rng(3).integers(0, 256, SHAPE)
    images = images_of(make_signal("plain"))
    others = frozenset(range(2, 256))
    check_stroke(images, labels, words, brush_of(action), (MIDDLE,), others)


@pytest.mark.parametrize("kind", ["plain", "equal", "nan", "two values"])
def test_what_was_erased_is_not_brought_back_from_beside(kind):
    labels, words = blank()
    images = images_of(make_signal(kind))
    labels[ball(MIDDLE, 9.0)] = 1
    gone_path = ((5.0, 20.0, 26.0),)
    removed = check_stroke(images, labels, words, brush_of(Action.ERASE, 4.0), gone_path)
    removed &= distance_to(gone_path, SHAPE) <= 4.0
    assert removed.any()
    beside = ((5.0, 20.0, 17.0),)
    for _ in range(4):
        check_stroke(images, labels, words, brush_of(Action.ADD, 4.0), beside)
    uncovered = removed & (distance_to(beside, SHAPE) > 4.0)
    assert uncovered.any()
    assert not labels[uncovered].any()


def test_words_of_every_value_are_read():
    """A damaged journal may hold any bits."""
    labels, _ = blank()
    labels[ball(MIDDLE, 6.0)] = 1
    words = np.random.default_rng(9).integers(0, 65536, SHAPE, dtype=np.uint16)
    for action in ACTIONS:
        check_stroke(images_of(make_signal("plain")), labels, words, brush_of(action), (MIDDLE,))


@pytest.mark.parametrize("seed", range(4))
def test_strokes_leave_no_confetti(seed):
    rng = np.random.default_rng(seed)
    images = images_of(make_signal("plain"), n_channels=1)
    grid = images.case.grid
    labels, words = blank()
    for _ in range(8):
        before = labels.astype(bool)
        action = ACTIONS[int(rng.random() < 0.4)]
        place = tuple(np.array(MIDDLE) + rng.normal(0, (1.5, 5, 5)))
        radius = float(rng.uniform(1.5, 8))
        check_stroke(images, labels, words, brush_of(action, radius), (place,))
        after, hold = labels.astype(bool), unpack_marks(words).hold
        clean = without_fragments(after, grid, before, hold)
        if action is Action.ADD:
            assert not (clean & ~after).any()
        else:
            assert not (after & ~clean).any()
