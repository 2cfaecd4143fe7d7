"""Which volumes have noise of their own: real scans do, what was computed from them does not."""

import numpy as np
import pytest
from scipy import ndimage
from tests.halves import half_by_day

from napari_mamamia.io.exam.looks import find_sliding
from napari_mamamia.io.exam.noise import SLAB, find_borrowed


def scans(n=5, seed=0, shape=(SLAB, 128, 112), deviation=6.0):
    """Return scans of one body with a noise of their own each, in whole numbers."""
    z, y, x = np.meshgrid(*(np.arange(size, dtype=float) for size in shape), indexing="ij")
    body = ((y - 70) / 50) ** 2 + ((x - 56) / 46) ** 2 < 1
    signal = np.where(body, 300 + 60 * np.sin(x / 11 + z) * np.cos(y / 9), 0.0)
    vessel = (y - 80) ** 2 + (x - 50) ** 2 < 150
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n):
        real = signal * (1 + 1.2 * (k > 0) * vessel) + rng.normal(0, deviation, shape)
        made.append(np.hypot(real, rng.normal(0, deviation, shape)).round())
    return np.stack(made).astype(np.float32)


def borrowed(*volumes):
    return find_borrowed(np.stack(volumes).astype(np.float32), [1.0] * len(volumes))


def test_scans_have_noise_of_their_own():
    found = scans()
    assert borrowed(*found).volumes == ()
    assert borrowed(*found).is_certain


@pytest.mark.parametrize(
    "compute",
    half_by_day(
        [
            lambda v: v[4] - v[0] + 500,
            lambda v: np.maximum(v[4] - v[0], 0),
            lambda v: v.max(axis=0),
            lambda v: v.mean(axis=0),
            lambda v: np.median(v, axis=0),
            lambda v: v.std(axis=0) * 4,
            lambda v: v[4] * 1.3,
            lambda v: ndimage.gaussian_filter(v[4], (0, 1.5, 1.5)),
            lambda v: ndimage.shift(v[4], (0.4, 0.3, -0.6), order=1, mode="nearest"),
            lambda v: ndimage.shift(v[4], (1, 4.3, -5.4), order=1, mode="nearest"),
            lambda v: 1000 * v[4] / (v[0] + 50),
        ]
    ),
)
def test_what_is_computed_from_scans_is_named_and_they_are_not(compute):
    found = scans(seed=3)
    last = np.asarray(compute(found)).round()
    assert borrowed(*found, last).volumes == (5,)


def test_two_differences_to_a_scan_of_which_the_minuends_are_absent_are_named():
    found = scans(3)
    differences = [np.maximum(one - found[0], 0) for one in found[1:]]
    assert borrowed(found[0], *differences).volumes == (1, 2)


def test_a_copy_of_each_scan_is_named_by_the_later_one():
    found = scans(3)
    moved = [np.roll(one, 2, axis=2) for one in found]
    assert borrowed(*found, *moved).volumes == (3, 4, 5)


def test_images_without_noise_tell_nothing():
    found = scans(3, deviation=0.0)
    answer = borrowed(*found, found.max(axis=0))
    assert answer.volumes == ()
    assert not answer.is_certain


def test_many_scans_and_their_mean_are_told_apart():
    found = scans(14, shape=(1, 128, 112))
    assert borrowed(*found).volumes == ()
    assert borrowed(*found, found.mean(axis=0).round()).volumes == (14,)


def test_a_mean_of_two_is_named_and_not_the_scans_it_lies_between():
    v = scans(seed=5)
    answer = borrowed(v[0], v[1], ((v[1] + v[2]) / 2).round(), v[2], v[3])
    assert (answer.volumes, answer.instead) == ((2,), ())


def test_of_a_scan_and_its_copy_the_later_is_named_and_the_other_may_be_it_instead():
    v = scans(seed=6)
    answer = borrowed(*v, (v[2] * 0.8).round())
    assert (answer.volumes, answer.instead) == ((5,), (2,))


@pytest.mark.parametrize("gain", [0.5, 0.6, 0.7, 1.5])
def test_a_receiver_of_another_gain_makes_no_copies(gain):
    found = scans(seed=7, deviation=8.0)
    found[4] = (found[4] * gain).round()
    assert borrowed(*found).volumes == ()


@pytest.mark.parametrize(
    "project",
    [
        *(lambda v, w=w: ndimage.maximum_filter1d(v, w, axis=0) for w in (2, 3, 4, 6, 7, 9, 11)),
        lambda v: ndimage.maximum_filter1d(v, 4, axis=0, origin=-2),
        lambda v: ndimage.minimum_filter1d(v, 7, axis=0),
        lambda v: ndimage.median_filter(v, (7, 1, 1)),
        lambda v: np.repeat(v[::2], 2, axis=0),
    ],
)
def test_sliding_projections_are_seen_without_the_scan_they_are_of(project):
    found = scans(3, seed=8, shape=(2 * SLAB, 128, 112))
    found = np.stack([found[0], project(found[1]), found[2]])
    assert find_sliding(found[:, 3 : 3 + SLAB]) == (1,)
    assert find_sliding(found[1:2, 3 : 3 + SLAB]) == (0,)


@pytest.mark.parametrize(
    "scan",
    [
        lambda: scans(2),
        lambda: scans(2, deviation=1.0),
        lambda: scans(2, deviation=0.3),
        lambda: scans(2) // 4 * 4,
        lambda: scans(2) // 20 * 20,
        lambda: np.where(scans(2) > 150, scans(2), 100),
        lambda: np.minimum(scans(2), 350),
        lambda: scans(2, shape=(2, 128, 112)),
    ],
)
def test_planes_of_scans_share_no_values_but_by_rounding_masks_and_cuts(scan):
    assert find_sliding(scan()) == ()


def test_one_plane_that_is_there_twice_is_no_projection():
    found = scans(2)
    found[1, 4] = found[1, 3]
    assert find_sliding(found) == ()
