"""One case fitted: its baseline, its reasons, its signs of life."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.phantoms.perfusion_case import (
    FLIP_DEGREES,
    RELAXIVITY,
    REPETITION_S,
    perfusion_phantom,
)
from tests.stepped import Stepped

from napari_mamamia.core.choices import TissueModel
from napari_mamamia.features.perfusion.kinetics.arterial_input import ArterialInput
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import SpoiledEcho
from napari_mamamia.features.perfusion.services.fit_cases import fit_case
from napari_mamamia.features.perfusion.services.settings import PerfusionSettings

ECHO = SpoiledEcho(REPETITION_S, FLIP_DEGREES, RELAXIVITY)
ASKED = PerfusionSettings(
    TissueModel.EXTENDED, ArterialInput(), RELAXIVITY, "", t10_map="t1", arrival_s=22.0
)


@pytest.fixture(scope="module")
def phantom():
    return perfusion_phantom(shape=(8, 16, 20), n_phases=40)


def test_the_baseline_is_the_mean_of_all_phases_before_arrival(phantom):
    signal = phantom.case.signal.astype(np.float32)
    for phase, factor in enumerate((1.06, 0.94, 1.06, 0.94)):  # phases 0 to 4 lie before 22 s
        signal[phase] *= factor
    uneven = replace(phantom.case, signal=signal)
    found = fit_case(uneven, phantom.lesion, phantom.t1_s, ECHO, ASKED)
    assert found.row.phases_before == 5
    for value in (0.25, 0.08):  # its rim and its core
        own = found.maps["ktrans"][phantom.lesion & (np.abs(phantom.ktrans - value) < 1e-6)]
        assert np.median(own) == pytest.approx(value, rel=0.01)


def test_one_t1_for_all_is_that_of_a_map_of_it(phantom):
    map_of_it = np.full(phantom.t1_s.shape, 1.4, np.float32)
    one = fit_case(phantom.case, phantom.lesion, 1.4, ECHO, ASKED)
    other = fit_case(phantom.case, phantom.lesion, map_of_it, ECHO, ASKED)
    for name, values in one.maps.items():
        np.testing.assert_allclose(values, other.maps[name], rtol=1e-4)


def test_a_fit_gives_signs_of_life_and_ends_at_any_of_them(phantom):
    asked = replace(ASKED, arrival_s=None)  # searched for
    steps = sum(
        1 for _ in Stepped(fit_case, phantom.case, phantom.lesion, phantom.t1_s, ECHO, asked)
    )
    assert steps > 20
    job = Stepped(fit_case, phantom.case, phantom.lesion, phantom.t1_s, ECHO, asked)
    for _ in range(10):
        next(job)
    job.close()


def test_without_a_mask_every_voxel_is_fitted_linearly_and_the_lesions_numbers_are_unknown(phantom):
    found = fit_case(phantom.case, None, phantom.t1_s, ECHO, ASKED)
    assert np.isnan(found.row.ktrans_median_per_min)
    rim = np.abs(phantom.ktrans - 0.25) < 1e-6
    assert np.median(found.maps["ktrans"][rim]) == pytest.approx(0.25, rel=0.03)
    assert "only the linear fit" in found.row.warning
