"""Balls in mm: opening, closing, filling, against SciPy and by hand."""

import numpy as np
import pytest
from scipy import ndimage

from napari_mamamia.segmentation.model.morphology import (
    ball_offsets,
    closed,
    dilated,
    eroded,
    filled,
    opened,
)

SPACINGS = [(1.0, 1.0, 1.0), (3.0, 0.7, 0.7), (2.5, 1.0, 1.5)]


def footprint(radius_mm, spacing_mm):
    reach = [int(radius_mm / s + 1e-6) for s in spacing_mm]
    axes = np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij")
    squared = sum((a * s) ** 2 for a, s in zip(axes, spacing_mm, strict=True))
    return squared <= radius_mm**2 * (1 + 1e-6)


@pytest.fixture
def mask():
    noise = np.random.default_rng(1).normal(size=(14, 20, 22))
    return ndimage.gaussian_filter(noise, 1.2) > 0.02


@pytest.mark.parametrize("spacing_mm", SPACINGS)
@pytest.mark.parametrize("radius_mm", [0.5, 1.0, 2.0, 3.2])
def test_balls_have_the_voxels_within_their_radius(radius_mm, spacing_mm):
    assert len(ball_offsets(radius_mm, spacing_mm)) == footprint(radius_mm, spacing_mm).sum() - 1


@pytest.mark.parametrize("spacing_mm", SPACINGS)
def test_erosion_and_dilation_equal_scipys(mask, spacing_mm):
    ball, structure = ball_offsets(2.0, spacing_mm), footprint(2.0, spacing_mm)
    np.testing.assert_array_equal(dilated(mask, ball), ndimage.binary_dilation(mask, structure))
    # what lies beyond the image counts as tissue
    expected = ndimage.binary_erosion(mask, structure, border_value=1)
    np.testing.assert_array_equal(eroded(mask, ball), expected)


def test_opening_removes_a_strand_and_keeps_a_ball():
    mask = np.zeros((9, 9, 30), dtype=bool)
    mask[4, 4, :] = True
    mask[2:7, 2:7, 10:15] = True
    rest = opened(mask, ball_offsets(1.0, (1.0, 1.0, 1.0)))
    assert not rest[:, :, 20:].any()
    assert rest[4, 4, 12]


def test_opening_leaves_a_thick_slice_alone():
    mask = np.zeros((3, 9, 9), dtype=bool)
    mask[1, 2:7, 2:7] = True
    opened_mask = opened(mask, ball_offsets(1.0, (5.0, 1.0, 1.0)))
    assert opened_mask.any()
    assert not opened_mask[[0, 2]].any()


@pytest.mark.parametrize("slices", [1, 5])
def test_closing_joins_across_a_gap_and_does_not_stick_to_the_images_edge(slices):
    mask = np.zeros((slices, 7, 12), dtype=bool)
    mask[:, 2:5, 2:5] = mask[:, 2:5, 6:9] = True
    shut = closed(mask, ball_offsets(1.0, (1.0, 1.0, 1.0)))
    middle = slices // 2
    # of the gap of three voxels a slice only the middle one has joined neighbours all around
    assert np.argwhere(shut[middle] & ~mask[middle]).tolist() == [[3, 5]]


def test_a_hollow_ball_is_filled():
    away = np.indices((11, 11, 11)) - 5
    radius = np.sqrt((away**2).sum(axis=0))
    shell = (radius <= 5) & (radius > 3)
    np.testing.assert_array_equal(filled(shell), radius <= 5)


def test_a_tube_that_is_open_at_both_ends_is_filled_across():
    tube = np.zeros((6, 7, 7), dtype=bool)
    tube[1:5, 1:6, 1:6] = True
    tube[1:5, 2:5, 2:5] = False
    assert filled(tube)[1:5, 1:6, 1:6].all()


def test_a_ring_that_would_grow_too_much_is_taken_for_surroundings():
    ring = np.zeros((1, 42, 42), dtype=bool)
    ring[0, 1:41, 1:41] = True
    ring[0, 2:40, 2:40] = False
    # 156 voxels around a hole of 38 x 38 = 1444: whole / rim = 10.3
    np.testing.assert_array_equal(filled(ring, most=10.0), ring)
    assert filled(ring, most=10.5).sum() == 1600


def test_without_offsets_nothing_changes(mask):
    for change in (dilated, eroded, opened, closed):
        result = change(mask, ())
        np.testing.assert_array_equal(result, mask)
        assert result is not mask


def test_a_step_longer_than_the_image_is_left_out():
    mask = np.ones((1, 3, 3), dtype=bool)
    assert eroded(mask, ball_offsets(5.0, (1.0, 1.0, 1.0))).all()
