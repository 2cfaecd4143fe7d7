"""What values of a file are a mask, what a soft mask, and what is refused with its range."""

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, foreground
from napari_mamamia.core.errors import NotAMaskError
from napari_mamamia.core.grid import Grid


def ball(n=9):
    """Return how sure a model is, 0 to 1: falling from the middle."""
    axes = np.indices((n, n, n)) - n // 2
    return np.clip(1.25 - np.sqrt((axes**2).sum(axis=0)) / 3.5, 0, 1)


BALL = ball()
CORE = BALL >= 0.5
LESIONS = np.zeros((3, 3, 90), np.int16)
LESIONS[1, 1, ::2] = np.arange(1, 46)
"""45 lesions of a voxel, each with its number, none beside another."""


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(BALL.astype(np.float32), id="0 to 1"),
        pytest.param(BALL.astype(np.float16), id="half float"),
        pytest.param((BALL * 1.0000002).astype(np.float32), id="a rounding step above 1"),
        pytest.param(BALL - 1e-9, id="a rounding step below 0"),
        pytest.param(np.where(BALL >= 1, 1.06, BALL - 0.03 * (BALL == 0)), id="spline"),
        pytest.param(CORE, id="bool"),
        pytest.param(CORE.astype(np.uint8), id="0 and 1"),
        pytest.param(CORE.astype(np.float64), id="0.0 and 1.0"),
        pytest.param(CORE.astype(np.uint8) * np.uint8(255), id="0 and 255, uint8"),
        pytest.param(CORE.astype(np.int16) * np.int16(255), id="0 and 255, int16"),
        pytest.param(CORE.astype(np.float32) * 255, id="0 and 255, float"),
        pytest.param(CORE * np.float32(254.9999), id="0 and 255 with a rounded slope"),
        pytest.param(CORE + CORE * (BALL > 0.8).astype(np.int16), id="labels 1 and 2"),
        pytest.param(np.where(CORE, 1, -1).astype(np.int16), id="-1 beside the mask"),
    ],
)
def test_a_mask_is_read_whatever_its_type_and_rounding(values):
    np.testing.assert_array_equal(foreground(values), CORE)


def test_a_number_for_each_lesion_is_no_scale():
    assert foreground(LESIONS).sum() == 45
    assert foreground(LESIONS, 30).sum() == 1


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (np.rint(BALL * 100).astype(np.uint8), "from 0 to 100, which is a different scale"),
        (np.rint(BALL * 255).astype(np.uint8), "from 0 to 255, which is a different scale"),
        (np.rint(BALL * 1000).astype(np.int16), "from 0 to 1000, which is a different scale"),
        (np.rint(BALL * 65535).astype(np.uint16), "from 0 to 65535"),
        (np.rint(BALL * 30).astype(np.uint8), "from 0 to 30, which is a different scale"),
        (np.rint(BALL * 10).astype(np.uint8), "from 0 to 10, which is a different scale"),
        (BALL * 100, "from 0 to 100, which is a different scale"),
        ((BALL * 255).astype(np.float32), "from 0 to 255"),
        (BALL * 8 - 4, "from -4 to 4, like logits"),
        (np.rint(BALL * 80 - 40).astype(np.int16), "from -40 to 40, like logits"),
        (BALL * 2, "from 0 to 2, which is a different scale"),
    ],
)
def test_another_scale_is_refused_with_its_range(values, found):
    with pytest.raises(NotAMaskError, match=found):
        foreground(values)


def test_divided_by_its_scale_a_map_is_a_soft_mask():
    """The way on that the refusal names."""
    np.testing.assert_array_equal(foreground(np.rint(BALL * 1000) / 1000), CORE)
    np.testing.assert_array_equal(
        foreground(np.rint(BALL * 200).astype(np.uint8) / np.float32(200)), CORE
    )


def test_a_chosen_label_is_taken_of_labels_and_a_soft_mask_has_none():
    organs = np.arange(120, dtype=np.uint8).reshape(4, 5, 6)
    assert foreground(organs, 117).sum() == 1
    np.testing.assert_array_equal(foreground(BALL.astype(np.float32), 2), CORE)
    assert not foreground(CORE.astype(np.float32), 2).any()
    with pytest.raises(NotAMaskError, match="a different scale"):
        foreground(BALL * 100, 1)


def test_a_refused_file_is_named(tmp_path):
    values = np.rint(BALL * 100).astype(np.uint8)
    path = tmp_path / "A.nii.gz"
    labels = LabelMap(Grid(values.shape, np.eye(4)), Box.whole(values.shape), values, path)
    with pytest.raises(NotAMaskError, match=r"A\.nii\.gz: expected a mask"):
        labels.mask()
    assert labels.mask(100).array.sum() == (values == 100).sum()
