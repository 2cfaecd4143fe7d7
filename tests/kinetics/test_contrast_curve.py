"""A curve with its classes, its rows in a table; the background of the other breast."""

import math

import numpy as np
import pytest
from skimage.filters import threshold_otsu

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.background import (
    background_enhancement,
    bright_from,
    central_half,
)
from napari_mamamia.kinetics.curve_figure import curve_figure
from napari_mamamia.kinetics.curves import (
    CurvePlot,
    DelayedCourse,
    InitialRise,
    contrast_curve,
    curve_rows,
    line_of,
    patch_curve,
    region_contrast_curve,
)
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.kinetics.timing import choose_phases
from napari_mamamia.kinetics.tumour_volume import functional_tumour_volume, prepare_ftv
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.enhancement import Scan, fit_kinetics
from napari_mamamia.phantom.spec import CurveType

TIMES = (0.0, 100.0, 200.0, 300.0)
PHASE0 = TimingRule(Timing.PHASE0_START)


def test_a_curve_by_hand():
    found = contrast_curve((100.0, 220.0, 260.0, 187.0), TIMES, rule=PHASE0)
    assert found.percent == (0.0, 120.0, 160.0, 87.0)
    assert (found.peak_phase, found.peak_percent) == (2, 160.0)
    assert found.initial is InitialRise.FAST
    assert found.change_percent == pytest.approx(-15.0)  # 100 (187 - 220) / 220
    assert found.delayed is DelayedCourse.WASHOUT


def test_a_curve_on_ucsfs_clock_takes_a_later_initial_phase():
    # posts start at 0, 100, 200 and stand at 50, 150, 250 s: 150 is nearer to 90-120 than 50
    found = contrast_curve((100.0, 220.0, 260.0, 187.0), TIMES)
    assert found.initial is InitialRise.FAST
    assert found.choice.early == 2
    assert (
        found.choice.reason
        == "the last phase is at 250 s, but a delayed phase must be at 270 s or later"
    )
    assert found.delayed is DelayedCourse.UNDEFINED


def test_a_curve_without_times_goes_by_the_order_of_phases_and_says_so():
    found = contrast_curve((100.0, 140.0, 140.0), (None, None, None))
    assert found.times_s is None
    assert found.choice.timing is Timing.PHASE_ORDER
    assert (found.initial, found.delayed) == (InitialRise.SLOW, DelayedCourse.PLATEAU)


def test_a_curve_of_one_phase_after_contrast_has_no_delayed_class():
    found = contrast_curve((100.0, 180.0), (0.0, 90.0))
    assert found.delayed is DelayedCourse.UNDEFINED
    assert math.isnan(found.change_percent)
    assert found.peak_percent == 80.0


def test_a_curve_without_signal_before_contrast_is_undefined():
    found = contrast_curve((0.0, 180.0, 170.0, 160.0), TIMES)
    assert found.initial is InitialRise.UNDEFINED
    assert found.peak_phase is None
    assert math.isnan(found.peak_percent)


def test_the_patch_is_cut_off_at_the_edge_and_lies_on_the_slice_shown():
    signal = np.ones((2, 3, 4, 5), np.int16)
    signal[1, 0, :2, :2] = 3  # the four voxels of the patch in the corner
    signal[1, 1] = 90  # the slice beside it
    corner = patch_curve(signal, (0, 0, 0), (0.0, 90.0), size=3, slice_axis=0)
    assert (corner.n_voxels, corner.signal) == (4, (1.0, 3.0))
    across = patch_curve(signal, (1, 2, 2), (0.0, 90.0), size=3, slice_axis=2)
    assert across.n_voxels == 9
    assert across.signal[1] == pytest.approx((3 * 1 + 3 * 90 + 3 * 1) / 9)
    assert patch_curve(signal, (1, 2, 2), (0.0, 90.0)).signal == (1.0, 90.0)


def test_a_region_without_voxels_has_an_undefined_curve():
    found = region_contrast_curve(np.ones((2, 2, 2, 2)), np.zeros((2, 2, 2), bool), (0.0, 90.0))
    assert found.n_voxels == 0
    assert all(math.isnan(value) for value in found.percent)


def test_voxels_that_are_not_numbers_are_left_out_of_every_phase():
    signal = np.array([[[[10.0, 10.0]]], [[[20.0, np.nan]]]])
    found = region_contrast_curve(signal, np.ones((1, 1, 2), bool), (0.0, 90.0))
    assert found.signal == (10.0, 20.0)


@pytest.mark.parametrize(
    ("curve", "course"),
    [
        (CurveType.PERSISTENT, DelayedCourse.PERSISTENT),
        (CurveType.PLATEAU, DelayedCourse.PLATEAU),
        (CurveType.WASHOUT, DelayedCourse.WASHOUT),
    ],
)
@pytest.mark.parametrize(("percent", "rise"), [(40.0, 1), (80.0, 2), (150.0, 3)])
def test_the_classes_that_a_phantom_tumour_was_given_come_back(curve, course, percent, rise):
    scan = Scan((0.0, 105.0, 200.0, 300.0, 400.0), 30.0, 3.0)
    _, signal = fit_kinetics(Tissue.TUMOUR, scan, percent, curve)
    found = contrast_curve(1000 * signal, scan.times_s, rule=PHASE0)  # as the phantom counts
    assert found.percent[1] == pytest.approx(percent, abs=1.0)
    assert found.initial == rise
    assert found.delayed is course


def test_the_table_of_curves_has_a_row_for_each_phase_with_units_in_its_own_columns():
    curve = contrast_curve((100.0, 150.0), (5.0, 95.0), n_voxels=7)
    plot = CurvePlot("A", curve.times_s, (line_of("mask", "#000000", curve),))
    assert curve_rows(plot) == (
        ("mask", 7.0, 0.0, 0.0, 100.0, 0.0),
        ("mask", 7.0, 1.0, 90.0, 150.0, 50.0),
    )


# --- the other breast


def test_two_kinds_of_tissue_are_parted_between_them():
    values = np.array([10, 11, 12, 13] * 5 + [100, 104] * 3, np.float32)
    assert 13 <= bright_from(values) < 100


def test_the_central_half_of_eight_slices_is_the_middle_four():
    mask = np.zeros((12, 2, 2), bool)
    mask[2:10] = True
    kept = central_half(mask, 0)
    assert np.flatnonzero(kept.any(axis=(1, 2))).tolist() == [4, 5, 6, 7]


def test_the_background_is_that_of_the_brighter_tissue():
    signal = np.full((2, 4, 20, 20), 50, np.int16)  # fat, suppressed: it does not enhance
    signal[0, :, :10], signal[1, :, :10] = 200, 230  # gland: 15 %
    found = background_enhancement(signal, np.ones((4, 20, 20), bool), 1)
    assert found.mean_percent == pytest.approx(15.0)
    assert found.median_percent == pytest.approx(15.0)
    assert found.n_voxels == 4 * 10 * 20


def test_a_voxel_is_chosen_as_gland_by_its_neighbours_and_not_by_itself():
    """The same voxels as a loop over 26 neighbours and scikit-image's Otsu threshold choose."""
    rng = np.random.default_rng(3)
    signal = rng.integers(50, 90, (2, 6, 12, 12)).astype(np.int16)
    signal[0, :, :6] += 100
    signal[0, 3, 9, 9] = 3000  # bright by itself, among dark neighbours
    signal[1] = 2 * signal[0]
    padded = np.pad(signal[0].astype(float), 1, mode="edge")
    means = np.empty(signal[0].shape, np.float32)
    for z, y, x in np.ndindex(means.shape):
        around = padded[z : z + 3, y : y + 3, x : x + 3]
        means[z, y, x] = (around.sum() - padded[z + 1, y + 1, x + 1]) / 26
    bright = means > threshold_otsu(means, 256)
    assert not bright[3, 9, 9]
    signal[1][bright] = 3 * signal[0][bright]
    found = background_enhancement(signal, np.ones(means.shape, bool), 1)
    assert found.n_voxels == np.count_nonzero(bright)
    assert found.mean_percent == pytest.approx(200.0)


def test_the_background_of_too_little_breast_is_unknown_with_the_reason():
    found = background_enhancement(np.ones((2, 3, 3, 3)), np.ones((3, 3, 3), bool), 1)
    assert math.isnan(found.mean_percent)
    assert "too little" in found.reason


def test_ftv_tells_how_much_enhances_but_is_too_dark_before_contrast():
    signal = np.full((3, 8, 8, 8), 400, np.int16)  # fat that is not suppressed
    signal[0, 2:5, 2:5, 2:5], signal[1:, 2:5, 2:5, 2:5] = 100, 300
    images = prepare_ftv(signal, choose_phases((0, 150, 450)), [Box.whole((8, 8, 8))])
    found = functional_tumour_volume(images, 1.0)
    assert images.bright_signal == 400.0
    assert (found.volume_cc, found.too_dark) == (0.0, 27)


def test_a_long_title_of_a_curve_is_broken_not_cut():
    """The figure is 6.4 inches wide: what stands outside of it is not seen."""
    case_id = "very_long_case_identifier_" * 3
    figure = curve_figure(CurvePlot(f"{case_id}: washout", None, ()))
    figure.canvas.draw()
    (axes,) = figure.axes
    assert axes.get_title(loc="left").replace("\n", "").replace(" ", "") == f"{case_id}:washout"
    extent = axes._left_title.get_window_extent()
    assert extent.x1 <= figure.bbox.x1
    assert extent.y1 <= figure.bbox.y1
