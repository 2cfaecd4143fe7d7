"""Growing again: marks are obeyed, a good mask stays, a poor one gets better, and words say so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import distance_transform_edt
from tests.smartpaint.test_outlined import (
    BOTH,
    LEFT,
    SHAPE,
    SPACING,
    ball,
    dice,
    images_of,
    outline,
)

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.marks import hold_voxels
from napari_mamamia.smartpaint.evidence.regrow import grow_again


def again(images, mask, words=None, outlines=(), label=1, edge_mm=None):
    labels = mask.astype(np.uint8) if mask.dtype == bool else mask
    words = np.zeros(labels.shape, np.uint16) if words is None else words
    grid = images.case.grid
    grown = grow_again(images, grid, labels, words, label, outlines, edge_mm=edge_mm)
    after = (labels == label).copy()
    after[grown.box.slices] = grown.mask
    return after, grown.notes


def changes(notes):
    return [note for note in notes if "of the mask changed" in note]


@pytest.mark.parametrize("step", [3.0, 5.0, 10.0])
def test_a_true_mask_is_not_made_worse_without_a_word(step):
    after, notes = again(images_of(LEFT, step=step), LEFT)
    assert dice(after, LEFT) > 0.98
    assert dice(after, LEFT) > 0.99 or changes(notes)


@pytest.mark.parametrize(
    "poor",
    [
        ball((12, 25, 20), 14),
        ball((12, 25, 20), 10),
        np.roll(LEFT, (0, 2, 2), (0, 1, 2)),
    ],
)
def test_a_poor_mask_gets_better_and_the_change_is_told(poor):
    after, notes = again(images_of(LEFT), poor)
    assert dice(after, LEFT) > max(0.95, dice(poor, LEFT))
    assert len(changes(notes)) == 1
    assert "ml" in changes(notes)[0]


@pytest.mark.parametrize(
    "poor", [ball((12, 25, 20), 14), ball((12, 25, 20), 10), np.roll(LEFT, (0, 2, 2), (0, 1, 2))]
)
def test_an_edge_follows_the_image_within_its_band(poor):
    after, _ = again(images_of(LEFT), poor, edge_mm=3.0)
    assert dice(after, LEFT) > max(0.95, dice(poor, LEFT))


def test_beyond_the_band_of_an_edge_nothing_changes():
    poor = ball((12, 25, 24), 15)
    after, _ = again(images_of(LEFT), poor, edge_mm=3.0)
    inside = distance_transform_edt(poor, SPACING)
    outside = distance_transform_edt(~poor, SPACING)
    assert (after != poor).any()
    assert after[inside > 3.0 + max(SPACING)].all()
    assert not after[outside > 3.0 + max(SPACING)].any()


def test_where_lesion_and_surroundings_look_alike_the_mask_stays_and_a_note_says_why():
    after, notes = again(images_of(LEFT, step=0.0), LEFT)
    np.testing.assert_array_equal(after, LEFT)
    assert any("look alike" in note for note in notes)


def test_what_was_erased_stays_erased_and_what_is_held_stays():
    words = np.zeros(SHAPE, np.uint16)
    erased, held = ball((12, 25, 28), 4), ball((12, 25, 38), 3)
    hold_voxels(words, erased, Action.ERASE)
    hold_voxels(words, held, Action.ADD)
    after, _ = again(images_of(LEFT), LEFT & ~erased | held, words)
    assert not (after & erased).any()
    assert after[held].all()


def test_a_leak_that_was_removed_does_not_come_back():
    leak = BOTH & ~LEFT
    words = np.zeros(SHAPE, np.uint16)
    hold_voxels(words, leak, Action.ERASE)
    after, _ = again(images_of(BOTH), LEFT, words)
    assert not (after & leak).any()


def test_outlines_are_obeyed_within_their_planes():
    drawn = outline(LEFT, 0, 12)
    after, _ = again(images_of(BOTH), BOTH, outlines=[drawn])
    assert not after[12, :, 40:].any()
    assert after[12, 25, 12:28].all()


def test_nothing_grows_into_another_label():
    labels = LEFT.astype(np.uint8)
    other = ball((12, 25, 30), 4)
    labels[other] = 2
    after, _ = again(images_of(LEFT), labels)
    assert not (after & other).any()


def test_an_empty_label_is_refused_and_held_voxels_alone_are_enough():
    images = images_of(LEFT)
    with pytest.raises(CaseError, match="expected a mask, an outline or a stroke"):
        again(images, np.zeros(SHAPE, np.uint8))
    words = np.zeros(SHAPE, np.uint16)
    hold_voxels(words, ball((12, 25, 20), 3), Action.ADD)
    after, _ = again(images, np.zeros(SHAPE, np.uint8), words)
    assert after[12, 25, 20]


def test_a_mask_of_everything_of_one_voxel_and_of_one_slice_come_back():
    full = np.ones(SHAPE, dtype=bool)
    after, notes = again(images_of(LEFT), full)
    assert after.any()
    assert notes
    dot = np.zeros(SHAPE, dtype=bool)
    dot[12, 25, 20] = True
    assert again(images_of(LEFT), dot)[0].any()
    flat = ball((0, 25, 20), 12, (1, 50, 60))
    after, _ = again(images_of(flat), np.roll(flat, 2, 2))
    assert dice(after, flat) > 0.95


def test_an_image_without_values_keeps_the_mask():
    images = images_of(LEFT)
    signal = np.full((1, *SHAPE), np.nan, np.float32)
    empty = FeatureImages(Case("A", images.case.grid, signal, (Phase(0),)), images.channels)
    after, notes = again(empty, LEFT)
    np.testing.assert_array_equal(after, LEFT)
    assert any("look alike" in note for note in notes)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), step=st.floats(0, 12), data=st.data())
def test_marks_are_obeyed_whatever_the_image_and_the_mask_are(seed, step, data):
    shape = (10, 20, 22)
    rng = np.random.default_rng(seed)
    lesion = ball((5, 10, 11), 6, shape)
    images = images_of(lesion, step=step, seed=seed)
    mask = np.roll(lesion, data.draw(st.integers(-6, 6)), 2) | (rng.random(shape) < 0.02)
    words = np.zeros(shape, np.uint16)
    erased, held = rng.random(shape) < 0.02, rng.random(shape) < 0.02
    hold_voxels(words, held, Action.ADD)
    hold_voxels(words, erased, Action.ERASE)
    labels = mask.astype(np.uint8)
    before = labels.copy()
    grown = grow_again(images, Grid(shape, np.diag([*SPACING[::-1], 1.0])), labels, words, 1)
    after = np.zeros(shape, dtype=bool)
    after[grown.box.slices] = grown.mask
    assert not (after & erased).any()
    assert after[held & ~erased].all()
    np.testing.assert_array_equal(labels, before)
