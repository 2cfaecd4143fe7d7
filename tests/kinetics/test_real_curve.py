"""The contrast curve of a real tumour: one sagittal slice, six phases.

It stands in the box P 85 to 115, rows 95 to 125 from the top (../shared/data/README.md).
"""

import json

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.kinetics.curves import (
    DelayedCourse,
    InitialRise,
    curve_enhancement,
    delayed_change,
    delayed_course,
    initial_rise,
    region_curve,
)
from napari_mamamia.kinetics.map_blocks import percent_enhancement
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases

pytestmark = pytest.mark.real

# PE of the mean signals over the voxels above 80 % at phase 2, worked out by somebody else. Which
# edges of the box were in it is not known: strictly between them it is met within 2 points, with
# all edges in it within 5.
KNOWN_PERCENT = (0.0, 164.4, 212.1, 209.9, 205.5, 197.4)
INNER, WHOLE = (slice(96, 125), slice(86, 115)), (slice(95, 126), slice(85, 116))


@pytest.fixture
def real_slice(real_data):
    """Return phases (phase, row from the top, P, 1) and their times, read by nibabel."""
    folder = real_data("dce_slice")
    files = sorted((folder / "images" / "REAL_001").glob("*.nii.gz"))
    images = [nib.load(file) for file in files]
    assert {"".join(nib.aff2axcodes(image.affine)) for image in images} == {"PSR"}
    signal = np.stack([np.asarray(image.dataobj) for image in images])  # (phase, P, S, 1)
    times = json.loads((folder / "times.json").read_text())["times_s"]
    return signal.transpose(0, 2, 1, 3)[:, ::-1], times


def rim_in(signal, box):
    inside = np.zeros(signal.shape[1:], dtype=bool)
    inside[box] = True
    return inside & (percent_enhancement(signal, 2) > 80)


@pytest.mark.parametrize(("box", "points"), [(INNER, 2.0), (WHOLE, 5.0)])
def test_the_rim_of_the_real_tumour_rises_by_212_percent_and_then_stays(real_slice, box, points):
    signal, _ = real_slice
    curve = curve_enhancement(region_curve(signal, rim_in(signal, box)))
    np.testing.assert_allclose(curve, KNOWN_PERCENT, atol=points)


def test_the_curve_of_the_real_rim_equals_a_slow_loop_over_its_voxels(real_slice):
    signal, _ = real_slice
    sums, count = [0] * 6, 0
    for row in range(95, 126):
        for column in range(85, 116):
            values = [int(phase[row, column, 0]) for phase in signal]
            if 100 * (values[2] - values[0]) > 80 * values[0] > 0:
                sums = [a + b for a, b in zip(sums, values, strict=True)]
                count += 1
    rim = rim_in(signal, WHOLE)
    assert np.count_nonzero(rim) == count == 579
    curve = region_curve(signal, rim)
    np.testing.assert_allclose(curve, [total / count for total in sums], rtol=1e-12)
    slow = [100 * (total - sums[0]) / sums[0] for total in sums]
    np.testing.assert_allclose(curve_enhancement(curve), slow, rtol=1e-9)


def test_the_real_tumour_rises_fast_and_reaches_a_plateau(real_slice):
    signal, times = real_slice
    choice = choose_curve_phases(times)
    # posts start at 82, 148, 230, 312, 394 s, half of 66 s later: 33, 99, 181, 263, 345 s
    assert (choice.early, choice.late) == (2, 5)
    ser = choose_phases(times)
    assert (ser.early, ser.late) == (3, 5)
    curve = region_curve(signal, rim_in(signal, INNER))
    assert initial_rise(curve_enhancement(curve)[1:2]).tolist() == [InitialRise.FAST]
    # 100 ((100 + 197.4) / (100 + 212.1) - 1)
    change = delayed_change(curve[choice.early, None], curve[choice.late, None])
    np.testing.assert_allclose(change, -4.7, atol=1.0)
    assert delayed_course(change).tolist() == [DelayedCourse.PLATEAU]


def test_counted_from_phase_0_the_initial_phase_lies_on_the_rise_and_the_curve_is_persistent(
    real_slice,
):
    signal, times = real_slice
    choice = choose_curve_phases(times, TimingRule(Timing.PHASE0_START))
    assert (choice.early, choice.late) == (1, 5)  # 82 s, 8 s before the window; 394 s
    curve = region_curve(signal, rim_in(signal, INNER))
    change = delayed_change(curve[choice.early, None], curve[choice.late, None])
    # 100 ((100 + 197.4) / (100 + 164.4) - 1) = 12.5: above the 10 % of a plateau
    np.testing.assert_allclose(change, 12.5, atol=1.0)
    assert delayed_course(change).tolist() == [DelayedCourse.PERSISTENT]
