"""Rows that hold one value at the end of a plane, against a count row by row."""

import numpy as np
import pytest

from napari_mamamia.io.exam.looks import blank_tails


def _counted(plane: np.ndarray) -> int:
    count = 0
    for row in plane[::-1]:
        if any(value != plane[-1, -1] for value in row):
            break
        count += 1
    return count


@pytest.mark.parametrize("n_blank", [0, 1, 15, 16, 17, 32, 39, 40])
@pytest.mark.parametrize("value", [0, -5])
def test_a_tail_is_counted_to_its_first_row_wherever_it_ends(n_blank: int, value: int) -> None:
    planes = np.random.default_rng(n_blank).integers(1, 900, (3, 40, 6)).astype(np.int16)
    planes[:, 40 - n_blank :] = value
    planes[2, 38, 2] = 901  # one voxel ends the tail
    assert blank_tails(planes).tolist() == [_counted(plane) for plane in planes]
    assert blank_tails(planes)[0] == n_blank


def test_a_plane_of_one_value_is_blank_from_its_first_row_and_one_of_nan_nowhere() -> None:
    assert blank_tails(np.zeros((2, 5, 4), np.int16)).tolist() == [5, 5]
    assert blank_tails(np.full((1, 5, 4), np.nan, np.float32)).tolist() == [0]
