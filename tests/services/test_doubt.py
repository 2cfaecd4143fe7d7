"""Entropy and doubtful places by hand."""

import numpy as np
import pytest

from napari_mamamia.core.grid import Grid
from napari_mamamia.services.predict.uncertainty import entropy_bits, find_uncertainty

GRID = Grid((4, 6, 8), np.diag([-2.0, -1.0, 3.0, 1.0]))  # a voxel is 6 mm3


def test_entropy_is_one_bit_at_a_half_and_that_of_a_quarter_by_hand():
    found = entropy_bits(np.array([0.0, 0.25, 0.5, 0.75, 1.0]))
    quarter = 0.25 * 2 + 0.75 * np.log2(4 / 3)
    assert found == pytest.approx([0, quarter, 1, quarter, 0], abs=1e-5)


def test_places_are_ordered_by_entropy_times_volume_and_lead_to_the_most_doubtful_voxel():
    probability = np.zeros(GRID.shape, np.float16)
    probability[0, 0, 0] = 0.5  # 1 voxel of 1 bit
    probability[2, 2:4, 3:6] = 0.25  # 6 voxels of 0.811 bit
    probability[2, 3, 4] = 0.5  # one of them of 1 bit
    found = find_uncertainty(probability, GRID)
    assert found.n_places == 2
    first, second = found.places
    assert first.voxel == (2, 3, 4)
    assert first.volume_mm3 == pytest.approx(36.0)
    assert first.mean == pytest.approx((5 * 0.8113 + 1) / 6, abs=1e-3)
    assert second.voxel == (0, 0, 0)
    assert second.weight == pytest.approx(6.0, abs=1e-2)
    assert found.amount.dtype == np.float16


def test_a_certain_model_leaves_no_place():
    found = find_uncertainty(np.ones(GRID.shape, np.float16), GRID)
    assert found.places == ()
    assert float(found.amount.max()) < 1e-3
