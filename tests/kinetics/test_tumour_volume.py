"""FTV against a plain slow loop, and against numbers worked out by hand."""

import itertools
import math

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.kinetics.timing import PhaseChoice
from napari_mamamia.kinetics.tumour_volume import (
    FtvSettings,
    FtvVariant,
    functional_tumour_volume,
    prepare_ftv,
)

CHOICE = PhaseChoice(early=1, late=2, timing=Timing.UCSF_FTV)
MM3 = 4.0


def random_case(seed, shape=(6, 9, 8)):
    rng = np.random.default_rng(seed)
    pre = rng.integers(0, 120, shape)
    early = pre + rng.integers(-20, 200, shape)
    late = pre + rng.integers(-60, 200, shape)
    return np.stack([pre, early, late]).astype(np.int16)


def slow_ftv(signal, boxes, omitted, settings):
    """Count voxel by voxel, as the definition reads; returns the SER of each one counted."""
    pre, early, late = (phase.astype(float) for phase in signal)
    region = {
        place
        for place in itertools.product(*(range(n) for n in pre.shape))
        if any(inside(place, box) for box in boxes)
        and not any(inside(place, box) for box in omitted)
    }
    values = sorted(pre[place] for place in region)
    at = 0.95 * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    threshold = settings.background * (values[low] + (at - low) * (values[high] - values[low]))
    threshold = math.floor(threshold + 0.5)
    passed = {
        place
        for place in itertools.product(*(range(n) for n in pre.shape))
        if pre[place] >= threshold
        and pre[place] > 0
        and 100 * (early[place] - pre[place]) / pre[place] >= settings.enhancement
    }
    found = {}
    for place in passed & region:
        around = itertools.product((-1, 0, 1), repeat=3)
        near = [tuple(a + b for a, b in zip(place, step, strict=True)) for step in around]
        if sum(n in passed for n in near if n != place) < settings.neighbours:
            continue
        if late[place] > pre[place]:
            ser = (early[place] - pre[place]) / (late[place] - pre[place])
            if ser >= settings.ser:
                found[place] = ser
    return found


def inside(place, box):
    return all(a <= i < b for i, a, b in zip(place, box.start, box.stop, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_ftv_equals_a_slow_loop_over_voxels_with_boxes_and_omitted_boxes(seed):
    signal = random_case(seed)
    boxes = (Box((0, 1, 1), (5, 7, 6)), Box((2, 4, 3), (6, 9, 8)))
    omitted = (Box((3, 3, 3), (4, 6, 5)),)
    settings = FtvSettings(0.3 + 0.04 * seed, 40.0 + 5 * seed, seed % 6, 0.1 * (seed % 4))
    expected = slow_ftv(signal, boxes, omitted, settings)
    assert expected
    got = functional_tumour_volume(prepare_ftv(signal, CHOICE, boxes, omitted), MM3, settings)
    z0, y0, x0 = got.box.start
    places = {(z + z0, y + y0, x + x0) for z, y, x in np.argwhere(got.mask).tolist()}
    assert places == set(expected)
    ser = list(expected.values())
    assert got.volume_cc == pytest.approx(len(ser) * MM3 / 1000)
    assert got.partial_cc == pytest.approx(sum(v >= 0.9 for v in ser) * MM3 / 1000)
    assert got.washout_cc == pytest.approx(sum(v > 1.3 for v in ser) * MM3 / 1000)
    by_colour = {part.colour: part.voxels for part in got.bins}
    assert by_colour["blue"] == sum(0 < v <= 0.9 for v in ser)
    assert by_colour["green"] == sum(1.0 < v <= 1.3 for v in ser)
    assert by_colour["white"] == sum(v > 3 or v == 0 for v in ser)
    assert sum(part.percent for part in got.bins) == pytest.approx(100)


def test_a_cube_of_27_enhancing_voxels_counts_whole_and_a_single_voxel_not():
    signal = np.full((3, 9, 9, 9), 100, np.int16)
    signal[1, 1:4, 1:4, 1:4], signal[2, 1:4, 1:4, 1:4] = 200, 180  # PE 100 %, SER 1.25
    signal[1, 7, 7, 7], signal[2, 7, 7, 7] = 200, 180
    images = prepare_ftv(signal, CHOICE, [Box.whole((9, 9, 9))])
    found = functional_tumour_volume(images, 2.0)
    assert found.background_signal == pytest.approx(60.0)  # 0.60 x P95 of a flat 100
    assert found.volume_cc == pytest.approx(27 * 2.0 / 1000)
    assert [part.voxels for part in found.bins] == [0, 0, 27, 0, 0, 0]
    lone = functional_tumour_volume(images, 2.0, FtvSettings(neighbours=0))
    assert lone.volume_cc == pytest.approx(28 * 2.0 / 1000)


def test_a_corner_of_a_cube_has_seven_neighbours_in_it():
    signal = np.full((3, 5, 5, 5), 100, np.int16)
    signal[1:, 1:4, 1:4, 1:4] = 200
    images = prepare_ftv(signal, CHOICE, [Box.whole((5, 5, 5))])
    voxels = [
        np.count_nonzero(functional_tumour_volume(images, 1.0, FtvSettings(neighbours=n)).mask)
        for n in (7, 8, 11, 12, 17, 18, 26)
    ]
    # 8 corners have 7 neighbours, 12 edges 11, 6 faces 17, the middle 26
    assert voxels == [27, 19, 19, 7, 7, 1, 1]


def test_voxels_without_ser_are_left_out_and_counted():
    signal = np.full((3, 4, 4, 4), 100, np.int16)
    signal[1] = 200
    signal[2] = 150
    signal[2, 0, 0, 0] = 100  # back at the signal before contrast
    found = functional_tumour_volume(prepare_ftv(signal, CHOICE, [Box.whole((4, 4, 4))]), 1.0)
    assert found.volume_cc == pytest.approx(0.063)
    assert found.without_ser == 1


def test_a_region_where_nothing_enhances_has_volume_zero_and_no_shares():
    signal = np.full((3, 4, 4, 4), 100, np.int16)
    found = functional_tumour_volume(prepare_ftv(signal, CHOICE, [Box.whole((4, 4, 4))]), 1.0)
    assert found.volume_cc == 0
    assert all(np.isnan(part.percent) for part in found.bins)


def test_omitted_voxels_do_not_enter_the_95th_percentile():
    signal = np.full((3, 4, 4, 4), 100, np.int16)
    signal[:, 0] = 0  # a fourth of the box, omitted: with its zeros counted P95 would stay 100
    signal[0, 1:3], signal[0, 3] = 10, 100
    omitted = [Box((3, 0, 0), (4, 4, 4)), Box((0, 0, 0), (1, 4, 4))]
    images = prepare_ftv(signal, CHOICE, [Box.whole((4, 4, 4))], omitted)
    assert functional_tumour_volume(images, 1.0).background_signal == pytest.approx(6.0)


def test_neighbours_outside_of_the_box_count():
    signal = np.full((3, 5, 5, 5), 100, np.int16)
    signal[1:, 1:4, 1:4, 1:4] = 200
    images = prepare_ftv(signal, CHOICE, [Box((2, 2, 2), (3, 3, 3))])  # the middle voxel alone
    found = functional_tumour_volume(images, 1.0, FtvSettings(neighbours=26))
    assert np.count_nonzero(found.mask) == 1


def test_the_threshold_before_contrast_is_rounded_to_a_whole_number_where_signals_are_whole():
    signal = np.full((3, 4, 4, 4), 79, np.int16)  # 0.60 x 79 = 47.4
    signal[0, 0, 0, 0], signal[1:] = 47, 300
    box = [Box.whole((4, 4, 4))]
    found = functional_tumour_volume(prepare_ftv(signal, CHOICE, box), 1.0)
    assert (found.background_signal, np.count_nonzero(found.mask)) == (47.0, 64)
    scaled = functional_tumour_volume(prepare_ftv(signal / 158, CHOICE, box), 1.0)
    assert scaled.background_signal == pytest.approx(0.3)  # a share of 0.5 is not rounded to 0 or 1
    assert np.count_nonzero(scaled.mask) == 63


def test_the_name_of_the_variant_says_its_thresholds():
    assert FtvSettings().name == (
        "FTV (ucsf-extension: S0 >= 60% of P95, rounded, PE >= 70 %, >= 4 of 26 neighbours, "
        "SER >= 0)"
    )
    assert [FtvSettings(neighbours=n).variant for n in (4, 9, 5)] == [
        "ucsf-extension",
        "ucsf-ispy1",
        "own",
    ]
    assert FtvSettings.of(FtvVariant.ISPY1) == FtvSettings(neighbours=9)


def test_ftv_without_a_late_phase_or_without_a_box_is_refused_with_the_reason():
    signal = random_case(0)
    early_only = PhaseChoice(1, None, Timing.UCSF_FTV, reason="there is no phase after it")
    with pytest.raises(CaseError, match="there is no phase after it"):
        prepare_ftv(signal, early_only, [Box.whole((6, 9, 8))])
    with pytest.raises(CaseError, match="draw a box"):
        prepare_ftv(signal, CHOICE, [])
    box = Box((1, 1, 1), (2, 2, 2))
    with pytest.raises(CaseError, match="draw a box"):
        prepare_ftv(signal, CHOICE, [box], [box])
