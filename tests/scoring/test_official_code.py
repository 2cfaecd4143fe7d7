"""The per-case numbers of official-code beside an independent slow implementation, bit for bit.

The slow one follows the description of the published function in words: it works on the whole
volume, finds contours by erosion label by label, and knows nothing of crops.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.ndimage import binary_erosion, generate_binary_structure
from scipy.spatial import cKDTree

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.grid import Grid
from napari_mamamia.scoring.case.profiles import OFFICIAL_CODE
from napari_mamamia.scoring.case.score import norm_hd, score_label_maps

FACES = generate_binary_structure(3, 1)


def slow_dsc(reference, prediction):
    a, b = reference == 1, prediction == 1
    total = int(a.sum()) + int(b.sum())
    return 2.0 * int((a & b).sum()) / total if total else 0.0


def slow_contour(labels):
    edge = np.zeros(labels.shape, dtype=bool)
    for value in np.unique(labels[labels > 0]):
        region = labels == value
        edge |= region & ~binary_erosion(region, FACES, border_value=1)
    return np.argwhere(edge)


def slow_hd95(reference, prediction):
    """Return HD95 in voxels; 0 where neither has a contour, infinite where one has none."""
    with np.errstate(invalid="ignore"):
        a, b = slow_contour(reference.astype(np.uint8)), slow_contour(prediction.astype(np.uint8))
    if not len(a) and not len(b):
        return 0.0
    if not len(a) or not len(b):
        return math.inf
    there, back = cKDTree(b).query(a)[0], cKDTree(a).query(b)[0]
    return max(np.percentile(there, 95), np.percentile(back, 95))


def slow_norm_hd(reference, prediction):
    distance = slow_hd95(reference, prediction)
    return 1.0 if math.isinf(distance) else distance / 150


def labels_of(values):
    box = Box.around(values)
    return LabelMap(Grid(values.shape, np.diag([-0.7, 0.7, 2.0, 1.0])), box, values[box.slices])


def assert_bit_identical(reference, prediction):
    maps = labels_of(reference), labels_of(prediction)
    score = score_label_maps("x", *maps, OFFICIAL_CODE)
    assert score.dsc == slow_dsc(reference, prediction)
    assert score.norm_hd == slow_norm_hd(reference, prediction)
    assert norm_hd(*maps, OFFICIAL_CODE) == score.norm_hd
    slow = slow_hd95(reference, prediction)
    neither_has_contour = slow == 0 and math.isnan(score.hausdorff95_voxels)
    assert score.hausdorff95_voxels == slow or math.isinf(slow) or neither_has_contour


def random_box(rng, shape):
    values = np.zeros(shape, dtype=np.uint8)
    start = [int(rng.integers(0, n)) for n in shape]
    stop = [int(rng.integers(s + 1, n + 1)) for s, n in zip(start, shape, strict=True)]
    values[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = 1
    return values


def box_and_speck(rng, shape):
    values = random_box(rng, shape)
    values[tuple(int(rng.integers(0, n)) for n in shape)] = 1
    return values


KINDS = (
    lambda rng, shape: np.zeros(shape, dtype=np.uint8),
    lambda rng, shape: np.full(shape, rng.choice([1, 1, 255]), dtype=np.uint8),
    lambda rng, shape: (rng.random(shape) < rng.uniform(0.02, 0.9)).astype(np.uint8),
    lambda rng, shape: rng.integers(0, 4, shape).astype(np.uint8),
    lambda rng, shape: (rng.random(shape) < 0.3).astype(np.uint8) * np.uint8(255),
    lambda rng, shape: (rng.random(shape) * 1.4).astype(np.float32),
    lambda rng, shape: rng.integers(-1, 2, shape).astype(np.int16),
    random_box,
    box_and_speck,
)
"""Kinds of mask that occur or break things: empty, full, noise, several labels, 255, soft,
negative, boxes that may touch the border, boxes with a far voxel."""


def random_labels(rng, shape):
    return KINDS[rng.integers(len(KINDS))](rng, shape)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.night) for seed in range(1, 8))]
)
def test_two_thousand_four_hundred_random_pairs_are_bit_identical(seed):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 10, 3))
        assert_bit_identical(random_labels(rng, shape), random_labels(rng, shape))


small = array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=5)
values = st.sampled_from([0, 0, 0, 1, 1, 2, 255])


@settings(deadline=None, max_examples=200)
@given(small.flatmap(lambda s: st.tuples(*[arrays(np.uint8, s, elements=values)] * 2)))
def test_found_counterexamples_would_shrink_here(pair):
    assert_bit_identical(*pair)


def cube(value=1, at=2, dtype=np.uint8):
    array = np.zeros((10, 10, 10), dtype=dtype)
    array[at : at + 4, 2:6, 2:6] = value
    return array


def test_distances_ignore_the_spacing():
    # ten slices of 2 mm apart: 10 voxels, not 20 mm, over 150
    a, b = np.zeros((2, 20, 8, 8), dtype=np.uint8)
    a[1:5, 2:6, 2:6] = 1
    b[11:15, 2:6, 2:6] = 1
    score = score_label_maps("x", labels_of(a), labels_of(b), OFFICIAL_CODE)
    assert score.hausdorff95_voxels == 10
    assert norm_hd(labels_of(a), labels_of(b), OFFICIAL_CODE) == 10 / 150
    assert score.hausdorff_mm == pytest.approx(20, abs=1e-12)


def test_norm_hd_is_not_clipped():
    a, b = np.zeros((2, 1, 1, 400), dtype=np.uint8)
    a[..., 0], b[..., 399] = 1, 1
    assert norm_hd(labels_of(a), labels_of(b), OFFICIAL_CODE) == 399 / 150


def test_two_empty_masks_score_dice_zero_and_norm_hd_zero():
    empty = labels_of(cube(0))
    assert score_label_maps("x", empty, empty, OFFICIAL_CODE).dsc == 0
    assert norm_hd(empty, empty, OFFICIAL_CODE) == 0


def test_one_empty_mask_scores_dice_zero_and_norm_hd_one():
    pair = labels_of(cube()), labels_of(cube(0))
    assert score_label_maps("x", *pair, OFFICIAL_CODE).dsc == 0
    assert norm_hd(*pair, OFFICIAL_CODE) == norm_hd(*pair[::-1], OFFICIAL_CODE) == 1


def test_label_255_scores_dice_zero_with_a_perfect_distance():
    pair = labels_of(cube(1)), labels_of(cube(255))
    score = score_label_maps("x", *pair, OFFICIAL_CODE)
    assert (score.dsc, score.hausdorff95_voxels, norm_hd(*pair, OFFICIAL_CODE)) == (0, 0, 0)
    assert "prediction contains the values 255" in score.warning


def test_a_soft_mask_is_empty_and_minus_one_is_foreground_to_distances():
    soft = labels_of(cube(0.6, dtype=np.float32))
    assert norm_hd(labels_of(cube()), soft, OFFICIAL_CODE) == 1
    negative = labels_of(cube(-1, dtype=np.int16))
    assert norm_hd(labels_of(cube()), negative, OFFICIAL_CODE) == 0


def test_a_prediction_that_fills_the_image_scores_like_an_empty_one():
    # it has no contour: against an empty reference both contours are missing
    full, empty = labels_of(cube(0) + np.uint8(1)), labels_of(cube(0))
    assert norm_hd(empty, full, OFFICIAL_CODE) == 0
    assert norm_hd(labels_of(cube()), full, OFFICIAL_CODE) == 1
    score = score_label_maps("x", labels_of(cube()), full, OFFICIAL_CODE)
    assert math.isnan(score.hausdorff95_voxels)
    assert "has no contour" in score.warning


@pytest.mark.parity
def test_distances_equal_simpleitk_contours_on_the_whole_volume():
    sitk = pytest.importorskip("SimpleITK")
    rng = np.random.default_rng(11)
    for _ in range(150):
        shape = tuple(int(n) for n in rng.integers(2, 12, 3))
        pair = [rng.integers(0, 3, shape).astype(np.uint8) for _ in range(2)]
        points = []
        for array in pair:
            edge = sitk.GetArrayFromImage(sitk.LabelContour(sitk.GetImageFromArray(array)))
            points.append(np.argwhere(edge > 0))
        if min(map(len, points)) == 0:
            continue
        a, b = points
        there, back = cKDTree(b).query(a)[0], cKDTree(a).query(b)[0]
        expected = max(np.percentile(there, 95), np.percentile(back, 95))
        score = score_label_maps("x", *map(labels_of, pair), OFFICIAL_CODE)
        assert score.hausdorff95_voxels == expected
