"""Small pictures of a model's inputs, against slices cut and turned by hand."""

import numpy as np
import pytest

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.kinetics.timing import choose_phases
from napari_mamamia.services.predict.input_pictures import (
    LARGEST_PIXELS,
    InputChannel,
    input_pictures,
    kinetic_channels,
)

AXIAL = np.diag([1.0, 1.0, 3.0, 1.0])
"""x runs to the patient's right, y to anterior: the screen shows both reversed."""


def case_of(signal, affine=AXIAL, times=None):
    """Return a case of phases ``(phase, z, y, x)``."""
    times = times or (None,) * len(signal)
    phases = tuple(Phase(k, t) for k, t in enumerate(times))
    return Case("A_1", Grid(signal.shape[1:], affine), signal, phases)


def channel(expression):
    return InputChannel("made", expression, expression)


def picture(case, expression, **more):
    (found,) = input_pictures(case, [channel(expression)], **more).pictures
    return found


@pytest.fixture
def ramp():
    """Phase 1 is 10 times phase 0, which counts its voxels."""
    first = np.arange(3 * 4 * 5, dtype=np.int16).reshape(3, 4, 5)
    return case_of(np.stack([first, 10 * first]))


def test_the_middle_slice_lies_as_on_the_screen(ramp):
    # slice 1 counts 20 .. 39; anterior is up and the patient's right on the left: both axes turn
    shown = np.arange(39, 19, -1, dtype=float).reshape(4, 5)
    low, high = np.percentile(shown, (1, 99))
    expected = np.clip((shown - low) / (high - low) * 255, 0, 255).round()
    found = picture(ramp, "p0")
    np.testing.assert_allclose(found.pixels, expected, atol=1)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_the_slice_asked_for_is_taken_and_one_that_is_not_there_is_not(ramp):
    assert picture(ramp, "p0", slice_index=2).high > 58
    assert picture(ramp, "p0", slice_index=3).high < 40


def test_a_difference_is_made_of_its_phases(ramp):
    # 10 n - n = 9 n: nine times the window of phase 0
    plain, made = picture(ramp, "p0"), picture(ramp, "p1-p0")
    assert made.high == pytest.approx(9 * plain.high)
    np.testing.assert_array_equal(made.pixels, plain.pixels)


def test_a_large_slice_becomes_a_small_picture_with_square_pixels():
    signal = np.zeros((2, 2, 200, 400), np.int16)
    signal[:, :, :100] = 100  # posterior half, below on the screen
    found = picture(case_of(signal), "p1")
    assert found.pixels.shape == (LARGEST_PIXELS // 2, LARGEST_PIXELS)
    assert found.pixels[:23].max() == 0
    assert found.pixels[25:].min() == 255


def test_a_sagittal_case_with_oblong_voxels_keeps_its_proportions():
    # slices of 3 mm along x; rows of 2 mm, columns of 1 mm: 40 mm by 30 mm
    signal = np.ones((2, 20, 30, 4), np.int16)
    found = picture(case_of(signal, np.diag([3.0, 1.0, 2.0, 1.0])), "p0")
    assert found.pixels.shape == (40, 30)


def test_a_slice_without_contrast_is_black():
    found = picture(case_of(np.full((2, 3, 4, 5), 7, np.int16)), "p0")
    assert not found.pixels.any()


def test_reversed_phases_are_told_and_right_ones_are_not(ramp):
    reversed_phases = case_of(ramp.signal[::-1])
    assert "wrong order" in input_pictures(reversed_phases, [channel("p0")]).warning
    assert input_pictures(ramp, [channel("p0")]).warning == ""


def test_the_weight_free_model_gets_three_phases_and_a_missing_late_one_has_no_picture(ramp):
    times = (0.0, 90.0)
    case = case_of(ramp.signal, times=times)
    channels = kinetic_channels(case, choose_phases(times))
    assert [one.text for one in channels] == [
        "before contrast ← pre",
        "early ← post 1 (90 s)",
        "no late phase",
    ]
    found = input_pictures(case, channels).pictures
    assert [one.pixels is not None for one in found] == [True, True, False]


def test_too_few_phases_are_an_error_with_the_number(ramp):
    with pytest.raises(CaseError, match="at least 6"):
        picture(ramp, "p5")
