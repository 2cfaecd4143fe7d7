"""What lies near a mask: a distance transform's bits, whatever the mask and the limit."""

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from napari_mamamia.smartpaint.evidence import scene

SPACINGS = [(1.0, 1.0, 1.0), (2.0, 0.7, 0.7), (0.1, 0.3, 0.2), (5.0, 1.4, 0.35), (0.703125,) * 3]


def random_mask(rng, shape):
    kind = rng.integers(4)
    if kind == 0:
        return rng.random(shape) < rng.choice([0.001, 0.02, 0.5, 0.99])
    mask = np.zeros(shape, np.bool_)
    if kind == 1:
        mask[tuple(rng.integers(shape))] = True
    elif kind == 2:
        mask[tuple(slice(0, int(rng.integers(1, n + 1))) for n in shape)] = True
    else:
        mask[...] = rng.random() < 0.5
    return mask


@pytest.mark.parametrize("voxels_a_shift", [0, 50])
@pytest.mark.parametrize("spacing", SPACINGS)
def test_near_is_what_a_distance_transform_says(monkeypatch, spacing, voxels_a_shift):
    # With 0 rows are laid over each other even in boxes so small that the transform is faster.
    monkeypatch.setattr(scene, "_VOXELS_A_SHIFT", voxels_a_shift)
    rng = np.random.default_rng(int(1000 * spacing[1]))
    for _ in range(60):
        mask = random_mask(rng, tuple(rng.integers(1, 24, 3).tolist()))
        # Multiples of a step are the limits that an offset lies exactly on.
        reaches = [float(rng.random() * 9), spacing[2] * int(rng.integers(9)), 3.0, 0.0]
        away = distance_transform_edt(~mask, spacing)
        for found, reach in zip(scene.find_near(mask, spacing, *reaches), reaches, strict=True):
            np.testing.assert_array_equal(found, away <= reach, f"{mask.shape} {reach}")


def test_where_an_offset_rounds_either_way_the_transform_is_asked(monkeypatch):
    """Of 3 x .1, .3 and their like some lie a last digit beyond, and some do not."""
    asked = []
    monkeypatch.setattr(
        scene,
        "distance_transform_edt",
        lambda *args: asked.append(1) or distance_transform_edt(*args),
    )
    mask = np.zeros((20, 20, 20), np.bool_)
    mask[9:12, 9:12, 9:12] = True
    for reach in (0.3, 0.6, 0.7, 0.9):
        (found,) = scene.find_near(mask, (0.1, 0.3, 0.7), reach)
        np.testing.assert_array_equal(
            found, distance_transform_edt(~mask, (0.1, 0.3, 0.7)) <= reach
        )
    assert asked


def test_a_mask_of_any_layout_is_left_as_it_is():
    rng = np.random.default_rng(5)
    whole = rng.random((30, 40, 40)) < 0.01
    for mask in (whole[3:, ::2, 1::3], whole.transpose(2, 0, 1), np.asfortranarray(whole)):
        before = mask.copy()
        (found,) = scene.find_near(mask, (1.0, 0.9, 0.8), 4.0)
        np.testing.assert_array_equal(
            found, distance_transform_edt(~before, (1.0, 0.9, 0.8)) <= 4.0
        )
        np.testing.assert_array_equal(mask, before)
