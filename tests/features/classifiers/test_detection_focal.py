"""raFocal, by the numbers worked out of the paper's equations and of the published code."""

import numpy as np
import pytest

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.features.classifiers.scoring.detection.focal import (
    FocalReading,
    risk_adjusted_focal,
)

LOGITS = np.array([0.5, -1, 1.2, -2], np.float32)  # as networks give them: 1.2 is 1.2000000477
IS_LESION = np.array([True, True, False, False])
SIZES = np.array([12.0, 28, 120, 6])  # of the lesions, and of the two background boxes


def test_the_paper_has_one_alpha_for_all_boxes():
    made = risk_adjusted_focal(LOGITS, IS_LESION, SIZES)
    assert made.weights.round(6).tolist() == [1.213360, 1.440211, 1.046250, 1.887567]
    expected = [0.1628784675, 1.0370286327, 0.8824348156, 0.0214194406]
    assert made.weighted == pytest.approx(expected, abs=5e-11)
    assert made.loss == pytest.approx(sum(expected), abs=5e-10)


def test_the_code_has_another_alpha_for_background_and_cuts_risks_at_0_641():
    made = risk_adjusted_focal(LOGITS, IS_LESION, SIZES, FocalReading.REFERENCE_CODE)
    expected = [0.1342375063, 0.7200534170, 0.2811422205, 0.0037825475]
    assert made.terms == pytest.approx(expected, abs=5e-11)
    assert made.weights == pytest.approx([1.213360, 1.440211, 1.359, 1.887567], abs=5e-4)
    # in half precision, and divided by the two boxes on a lesion
    assert made.loss == pytest.approx(1.5893197343 / 2, abs=5e-11)


def test_above_47_mm_every_lesion_weighs_the_same_in_the_code():
    sizes = np.array([47.3, 80, 150])
    lesions = np.ones(3, bool)
    code = risk_adjusted_focal(np.zeros(3), lesions, sizes, FocalReading.REFERENCE_CODE)
    assert len(set(code.weights)) == 1
    assert code.weights[0] == pytest.approx(1.641, abs=5e-4)


def test_a_loss_of_no_lesion_is_not_divided_by_zero():
    nothing = np.array([False])
    made = risk_adjusted_focal(np.zeros(1), nothing, np.ones(1), FocalReading.REFERENCE_CODE)
    assert np.isfinite(made.loss)


def test_huge_logits_stay_finite():
    lesions = np.array([True, False])
    made = risk_adjusted_focal(np.array([-1e4, 1e4]), lesions, np.ones(2))
    assert np.isfinite(made.weighted).all()


@pytest.mark.parametrize("sizes", [np.ones(3), np.array([1, np.nan, 1, 1.0])])
def test_arrays_that_do_not_fit_are_refused(sizes):
    with pytest.raises(ArgumentError):
        risk_adjusted_focal(LOGITS, IS_LESION, sizes)
