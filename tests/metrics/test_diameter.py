from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from napari_mamamia.metrics.diameter import longest_diameter_mm

OBLIQUE = np.array([[0.1, 0.9, 0.3], [0.2, -0.4, 0.8], [2.0, 0.1, -0.2]])


def slow(mask, matrix):
    """All pairs of all voxels."""
    places = np.argwhere(mask) @ matrix.T
    return float(pdist(places).max()) if len(places) > 1 else 0.0


def ball(radii, shape):
    z, y, x = np.ogrid[tuple(slice(n) for n in shape)]
    middle = [(n - 1) / 2 for n in shape]
    parts = zip((z, y, x), middle, radii, strict=True)
    return sum(((axis - m) / r) ** 2 for axis, m, r in parts) <= 1


def test_the_diameter_of_an_empty_mask_is_nan():
    for shape in ((2, 3, 4), (0, 0, 0)):
        assert np.isnan(longest_diameter_mm(np.zeros(shape, dtype=bool), np.eye(3)))


def test_the_diameter_of_one_voxel_is_zero():
    mask = np.zeros((2, 3, 4), dtype=bool)
    mask[1, 2, 3] = True
    assert longest_diameter_mm(mask, np.eye(3)) == 0


def test_two_voxels_3_and_4_mm_apart_along_two_axes_are_5_mm_apart():
    mask = np.zeros((2, 2, 5), dtype=bool)
    mask[0, 0, 0] = mask[1, 0, 4] = True
    assert longest_diameter_mm(mask, np.diag([3.0, 7.0, 1.0])) == 5


def test_both_parts_of_a_mask_count_together():
    mask = np.zeros((1, 1, 20), dtype=bool)
    mask[0, 0, [0, 1, 19]] = True
    assert longest_diameter_mm(mask, np.eye(3)) == 19


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.9))
def test_the_diameter_is_that_of_all_pairs_on_an_oblique_grid(seed, density):
    rng = np.random.default_rng(seed)
    mask = rng.random(rng.integers(1, 12, 3)) < density
    if mask.any():
        assert longest_diameter_mm(mask, OBLIQUE) == pytest.approx(slow(mask, OBLIQUE), rel=1e-12)


def test_a_large_lesion_has_the_diameter_of_all_pairs_of_its_rim():
    mask = ball((7.3, 14.2, 12.1), (18, 32, 30))
    assert np.count_nonzero(mask) > 5000
    assert longest_diameter_mm(mask, OBLIQUE) == pytest.approx(slow(mask, OBLIQUE), rel=1e-12)


def test_a_large_lesion_of_one_slice_has_no_hull_but_a_diameter():
    mask = ball((0.5, 250, 240), (1, 520, 500))
    rim = mask & ~np.pad(mask, ((0, 0), (1, 1), (1, 1)))[:, 2:, 1:-1]
    rim |= mask & ~np.pad(mask, ((0, 0), (1, 1), (1, 1)))[:, :-2, 1:-1]
    matrix = np.diag([2.0, 0.7, 0.6])
    assert longest_diameter_mm(mask, matrix) == pytest.approx(slow(rim, matrix), rel=1e-12)


@pytest.mark.parity
def test_the_diameter_is_the_feret_diameter_of_simpleitk():
    sitk: Any = pytest.importorskip("SimpleITK")
    spacing = (2.0, 0.7, 0.9)
    mask = ball((5.2, 11.1, 9.3), (14, 26, 24))
    mask[2:5, 3:9, 1:4] = True
    image = sitk.GetImageFromArray(mask.astype(np.uint8))
    image.SetSpacing(spacing[::-1])
    shape = sitk.LabelShapeStatisticsImageFilter()
    shape.ComputeFeretDiameterOn()
    shape.Execute(image)
    expected = shape.GetFeretDiameter(1)
    assert longest_diameter_mm(mask, np.diag(spacing)) == pytest.approx(expected, rel=1e-9)
