"""Properties of the surface metrics, and a ten-line slow path beside the fast one."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.ndimage import binary_erosion

from napari_mamamia.metrics.crop import joint_crop
from napari_mamamia.metrics.surface import (
    ContourRule,
    assd,
    contour,
    contour_pair,
    distances_between,
    hausdorff,
    hausdorff95,
    nsd,
    surface_distances,
)

RULES = list(ContourRule)
FACES = np.array([[[0, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 1, 1], [0, 1, 0]]] * 2)[:3]

shapes = array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=6)
label_pairs = shapes.flatmap(
    lambda s: st.tuples(*[arrays(np.uint8, s, elements=st.integers(0, 2), fill=st.just(0))] * 2)
)
pairs = shapes.flatmap(lambda s: st.tuples(arrays(np.bool_, s), arrays(np.bool_, s)))
spacings = st.tuples(*[st.floats(0.3, 4)] * 3)


def slow_contour(mask, rule):
    return mask & ~binary_erosion(mask, FACES, border_value=int(rule is ContourRule.OPEN))


def slow_distances(a, b, matrix, rule):
    """Every pair of contour voxels of the whole volume, without cropping or a tree."""
    at_a, at_b = (np.argwhere(slow_contour(m, rule)) @ matrix.T for m in (a, b))
    table = np.linalg.norm(at_a[:, None] - at_b[None], axis=2)
    return table.min(axis=1), table.min(axis=0)


def both_have_contours(a, b, rule):
    return slow_contour(a, rule).any() and slow_contour(b, rule).any()


@settings(deadline=None, max_examples=60)
@given(pairs, st.sampled_from(RULES))
def test_the_contour_is_the_mask_less_its_erosion(pair, rule):
    mask, _ = pair
    assert np.array_equal(contour(mask, rule), slow_contour(mask, rule))


@settings(deadline=None, max_examples=60)
@given(pairs, spacings, st.floats(-0.5, 0.5), st.sampled_from(RULES))
def test_distances_equal_the_slow_path_on_any_grid(pair, spacing, shear, rule):
    a, b = pair
    assume(both_have_contours(a, b, rule))
    matrix = np.diag(spacing)
    matrix[2, 0] = shear
    d = surface_distances(a, b, matrix, rule)
    there, back = slow_distances(a, b, matrix, rule)
    assert np.allclose(d.reference_to_prediction, there, rtol=1e-12, atol=1e-12)
    assert np.allclose(d.prediction_to_reference, back, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(pairs, spacings, st.sampled_from(RULES))
def test_metrics_are_symmetric_ordered_and_within_their_range(pair, spacing, rule):
    a, b = pair
    assume(both_have_contours(a, b, rule))
    d = surface_distances(a, b, np.diag(spacing), rule)
    swapped = surface_distances(b, a, np.diag(spacing), rule)
    assert hausdorff(d) == hausdorff(swapped)
    assert hausdorff95(d) == hausdorff95(swapped)
    assert np.isclose(assd(d), assd(swapped), rtol=1e-12)
    assert 0 <= hausdorff95(d) <= hausdorff(d)
    assert assd(d) <= hausdorff(d) + 1e-12
    assert 0 <= nsd(d, 1.0) <= nsd(d, 2.0) <= 1


@settings(deadline=None, max_examples=50)
@given(pairs, st.sampled_from([0.5, 2.0, 4.0]))
def test_distances_scale_with_the_spacing(pair, factor):
    a, b = pair
    assume(a.any() and b.any())
    matrix = np.diag([2.0, 0.7, 0.9])
    d, scaled = surface_distances(a, b, matrix), surface_distances(a, b, factor * matrix)
    # a power of two scales floating-point numbers exactly
    assert hausdorff(scaled) == factor * hausdorff(d)
    assert hausdorff95(scaled) == factor * hausdorff95(d)


@settings(deadline=None, max_examples=50)
@given(pairs, st.tuples(*[st.integers(0, 3)] * 6))
def test_moving_both_masks_in_a_larger_image_changes_nothing(pair, margins):
    a, b = pair
    assume(a.any() and b.any())
    around = tuple(zip(margins[:3], margins[3:], strict=True))
    matrix = np.diag([2.0, 0.7, 0.9])
    d = surface_distances(a, b, matrix)
    moved = surface_distances(np.pad(a, around), np.pad(b, around), matrix)
    assert np.allclose(d.reference_to_prediction, moved.reference_to_prediction, rtol=1e-12)
    assert np.allclose(d.prediction_to_reference, moved.prediction_to_reference, rtol=1e-12)


@settings(deadline=None, max_examples=80)
@given(pairs, st.sampled_from(RULES))
def test_cropping_first_changes_nothing_even_where_the_box_touches_the_border(pair, rule):
    a, b = pair
    cut_a, cut_b = joint_crop(a, b)
    whole, cut = surface_distances(a, b, rule=rule), surface_distances(cut_a, cut_b, rule=rule)
    assert np.array_equal(whole.reference_to_prediction, cut.reference_to_prediction)
    assert np.array_equal(whole.prediction_to_reference, cut.prediction_to_reference)
    if both_have_contours(a, b, rule):
        there, back = slow_distances(a, b, np.eye(3), rule)
        assert np.array_equal(cut.reference_to_prediction, there)
        assert np.array_equal(cut.prediction_to_reference, back)


def test_far_false_positives_and_large_contours_equal_the_slow_path():
    z, y, x = np.indices((24, 40, 60))
    a = (z - 12) ** 2 * 4 + (y - 20) ** 2 + (x - 15) ** 2 < 144
    b = np.roll(a, (1, 2, 1), (0, 1, 2))
    b[2:4, 3:5, 55:58] = True
    d = surface_distances(a, b, np.diag([2.0, 0.7, 0.7]))
    there, back = slow_distances(a, b, np.diag([2.0, 0.7, 0.7]), ContourRule.CLOSED)
    assert np.allclose(d.reference_to_prediction, there, rtol=1e-12)
    assert np.allclose(d.prediction_to_reference, back, rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(label_pairs, st.integers(0, 1), st.booleans())
def test_a_plain_pair_has_the_contours_of_its_foregrounds_under_both_rules(labels, pad, one_label):
    a, b = (np.pad(np.minimum(v, 1) if one_label else v, pad) for v in labels)
    pair = contour_pair(a, b, ContourRule.OPEN)
    for found, values in ((pair.reference, a), (pair.prediction, b)):
        assert np.array_equal(found, np.argwhere(contour(values, ContourRule.OPEN)))
        if pair.is_plain:
            assert np.array_equal(found, np.argwhere(slow_contour(values != 0, ContourRule.CLOSED)))
    faces = [np.moveaxis(v, axis, 0)[[0, -1]].any() for v in (a, b) for axis in range(3)]
    assert pair.is_plain == (not any(faces) and max(np.unique(v).size for v in (a, b)) <= 2)


@settings(deadline=None, max_examples=60)
@given(pairs, spacings, st.sampled_from(RULES))
def test_two_units_measured_together_are_those_measured_alone(pair, spacing, rule):
    matrix = np.diag(spacing)
    mm, voxels = distances_between(contour_pair(*pair, rule), (matrix, None))
    for together, unit in ((mm, matrix), (voxels, None)):
        alone = surface_distances(*pair, unit, rule)
        for name in ("reference_to_prediction", "prediction_to_reference"):
            assert np.allclose(getattr(together, name), getattr(alone, name), rtol=1e-12)
