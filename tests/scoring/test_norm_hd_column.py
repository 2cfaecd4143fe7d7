"""Dice, NormHD and status of a case under each profile, point by point."""

import math

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE, PAPER, PROFILES
from napari_mamamia.scoring.case.score import norm_hd, score_label_maps

SHAPE = (8, 10, 12)
AFFINE = np.diag([-1.0, 1.0, 2.0, 1.0])
NAN = math.nan


def labels(array, affine=AFFINE):
    box = Box.around(array)
    return LabelMap(Grid(array.shape, affine), box, array[box.slices])


def cube(value=1, x=2, dtype=np.uint8):
    array = np.zeros(SHAPE, dtype=dtype)
    array[2:6, 2:6, x : x + 4] = value
    return labels(array)


EMPTY = labels(np.zeros(SHAPE, dtype=np.uint8))
FULL = labels(np.ones(SHAPE, dtype=np.uint8))


@pytest.mark.parametrize(
    ("profile", "reference", "prediction", "status", "dsc", "value"),
    [
        # 3 of 4 columns of the cubes overlap: 2 * 48 / 128; one voxel of 1 mm apart
        (OFFICIAL_CODE, cube(), cube(x=3), "ok", 0.75, 1 / 150),
        (PAPER, cube(), cube(x=3), "ok", 0.75, 1 / 150),
        (CLINICAL, cube(), cube(x=3), "ok", 0.75, 1 / 150),
        (OFFICIAL_CODE, EMPTY, EMPTY, "both_empty", 0, 0),
        (PAPER, EMPTY, EMPTY, "both_empty", 0, 1),
        (CLINICAL, EMPTY, EMPTY, "both_empty", NAN, NAN),
        *[(p, cube(), EMPTY, "prediction_empty", 0, 1) for p in PROFILES.values()],
        *[(p, EMPTY, cube(), "reference_empty", 0, 1) for p in PROFILES.values()],
        (OFFICIAL_CODE, cube(), None, "prediction_missing", NAN, NAN),
        (PAPER, cube(), None, "prediction_missing", 0, 1),
        (CLINICAL, cube(), None, "prediction_missing", 0, 1),
        (PAPER, EMPTY, None, "prediction_missing", 0, 1),
        (CLINICAL, EMPTY, None, "prediction_missing", NAN, NAN),
        *[(p, None, cube(), "reference_missing", NAN, NAN) for p in PROFILES.values()],
        # the value 255: no Dice foreground under official-code, but distance foreground
        (OFFICIAL_CODE, cube(255), cube(255), "ok", 0, 0),
        (PAPER, cube(255), cube(255), "ok", 1, 0),
        (PAPER, cube(2), cube(2), "both_empty", 0, 1),
        (CLINICAL, cube(255), cube(255), "ok", 1, 0),
        # a mask that fills the image has no contour inside it
        (OFFICIAL_CODE, FULL, FULL, "ok", 1, 0),
        (OFFICIAL_CODE, cube(), FULL, "ok", 2 * 64 / (64 + 960), 1),
        (CLINICAL, FULL, FULL, "ok", 1, 0),
        (PAPER, FULL, FULL, "ok", 1, 0),
    ],
)
def test_status_dice_and_norm_hd_are_those_of_the_profile(
    profile, reference, prediction, status, dsc, value
):
    score = score_label_maps("A", reference, prediction, profile)
    assert score.status == ScoreStatus(status)
    assert score.profile == profile.name
    assert score.dsc == pytest.approx(dsc, nan_ok=True, abs=1e-15)
    assert score.norm_hd == pytest.approx(value, nan_ok=True, abs=1e-15)


def test_moved_masks_are_compared_by_official_code_alone_and_warned_of():
    moved = AFFINE.copy()
    moved[0, 3] = 30
    array = np.zeros(SHAPE, dtype=np.uint8)
    array[2:6, 2:6, 2:6] = 1
    found = {
        p.name: score_label_maps("A", cube(), labels(array, moved), p) for p in PROFILES.values()
    }
    assert (found["official-code"].dsc, found["official-code"].norm_hd) == (1, 0)
    assert "affine_differs" in found["official-code"].warning
    for name in ("paper", "clinical"):
        assert found[name].status is ScoreStatus.GRID_MISMATCH
        assert math.isnan(found[name].norm_hd)


def test_norm_hd_is_cut_to_one_except_under_official_code():
    wide = np.zeros((1, 1, 400), dtype=np.uint8)
    near, far = wide.copy(), wide.copy()
    near[..., 0:2], far[..., 398:] = 1, 1
    pair = labels(near), labels(far)
    values = {p.name: score_label_maps("A", *pair, p).norm_hd for p in PROFILES.values()}
    # one contour voxel each inside the image (x = 1 and 398) for official-code
    assert values == {"official-code": 397 / 150, "paper": 1, "clinical": 1}


@pytest.mark.parametrize("n_pairs", [60, pytest.param(200, marks=pytest.mark.night)])
@pytest.mark.parametrize("profile", PROFILES.values())
def test_the_column_is_the_function_on_random_masks(profile, n_pairs):
    rng = np.random.default_rng(3)
    for _ in range(n_pairs):
        shape = tuple(int(n) for n in rng.integers(1, 7, 3))
        pair = [labels((rng.random(shape) < rng.random()).astype(np.uint8)) for _ in "ab"]
        score = score_label_maps("A", *pair, profile)
        expected = norm_hd(*pair, profile)
        assert score.norm_hd == expected or (math.isnan(expected) and math.isnan(score.norm_hd))
