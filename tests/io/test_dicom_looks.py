"""Whether contrast came between two volumes: weak contrast, motion, gain; and real pixels."""

import importlib.util
from pathlib import Path

import nibabel
import numpy as np
import pytest

from napari_mamamia.io.exam.looks import Contrast, contrast_between, enhancement
from napari_mamamia.kinetics.arrival import find_arrival

_SPEC = importlib.util.spec_from_file_location(
    "dicom_hostile", Path(__file__).parents[1] / "dicom_hostile.py"
)
hostile = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hostile)
breast = hostile.breast
CAME, NONE, UNCLEAR = Contrast.CAME, Contrast.NONE, Contrast.UNCLEAR


def slow_means(volume):
    """Return means over 4 x 4 voxels, one by one."""
    n, rows, columns = volume.shape
    out = np.empty((n, rows // 4, columns // 4), np.float32)
    for z, y, x in np.ndindex(out.shape):
        out[z, y, x] = volume[z, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4].mean()
    return out


def verdict(before, after):
    return contrast_between(slow_means(before), slow_means(after))


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ({}, CAME),
        ({"share": 0.5}, CAME),
        ({"share": 0.3}, CAME),
        ({"parts": ("gland", "tumour")}, CAME),
        ({"parts": ("tumour",)}, UNCLEAR),
        ({"parts": ("tumour",), "share": 0.3}, UNCLEAR),
        ({"parts": ()}, NONE),
        ({"shift": 2}, CAME),
        ({"gain": 0.2}, CAME),
        ({"gain": 0.4}, CAME),
    ],
)
def test_what_is_seen_of_contrast(looks, expected):
    assert verdict(breast(0), breast(1, seed=1, **looks)) is expected


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ({}, NONE),
        ({"shift": 1}, NONE),
        ({"shift": 2}, NONE),
        ({"shift": 3}, NONE),
        ({"gain": 0.1}, NONE),
        ({"gain": 0.2}, UNCLEAR),
        ({"gain": 0.4}, NONE),
    ],
)
def test_what_is_seen_where_none_came(looks, expected):
    assert verdict(breast(0), breast(0, seed=1, **looks)) is expected


def test_a_shorter_patch_than_12_voxels_is_no_patch():
    before = np.full((3, 128, 144), 300.0)
    for size, expected in ((8, NONE), (12, UNCLEAR)):
        after = before.copy()
        after[1, 40 : 40 + size, 40 : 40 + size] *= 2
        assert verdict(before, after) is expected
        assert abs(enhancement(slow_means(before), slow_means(after))) < 0.01


def test_empty_volumes_show_no_contrast():
    empty = np.zeros((2, 32, 32), np.float32)
    assert contrast_between(empty, empty) is NONE


def test_a_repeated_pre_is_claimed_only_where_nothing_rises():
    for again, n_before in (({}, 2), ({"shift": 2}, 2), ({"gain": 0.2}, 1), ({"k": 1}, 1)):
        second = breast(again.get("k", 0), seed=2, **{k: v for k, v in again.items() if k != "k"})
        found = find_arrival(np.stack([breast(0), second, breast(1, seed=4), breast(2, seed=5)]))
        assert found.n_before == n_before, again
        assert ("not clear" in found.evidence) == ("gain" in again)


# ---- real pixels


@pytest.fixture(scope="module")
def slice_phases(real_data):
    files = sorted((real_data("dce_slice") / "images").rglob("*.nii.gz"))
    return [np.asarray(nibabel.load(file).dataobj).T.astype(float) for file in files]


@pytest.mark.real
def test_contrast_came_in_a_real_slice_and_not_by_moving_its_pre(slice_phases):
    pre, first = slice_phases[:2]
    assert verdict(pre, first) is CAME
    for moved in ((0, 1), (1, 0), (2, 0), (3, 0), (0, 3)):
        assert verdict(pre, np.roll(pre, moved, (1, 2))) is NONE
    assert verdict(pre, np.roll(pre, (2, 2), (1, 2))) is UNCLEAR
