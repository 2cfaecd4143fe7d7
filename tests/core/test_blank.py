"""Large arrays of zeros of which little is written."""

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core import blank
from napari_mamamia.core.blank import blank_array
from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.session.state import MaskState

SHAPE = (160, 448, 448)
BOX = Box((20, 100, 100), (97, 207, 215))
"""A large lesion's: 31 MB lie between its first and last voxel of 2 bytes, 2 MB are in it."""


def resident_bytes() -> int:
    """Return how much memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("shape", [SHAPE, (2, 3, 4), (0, 5, 5), ()])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_it_is_zeros_that_can_be_written_like_any_other(
    shape: tuple[int, ...], dtype: type
) -> None:
    array = blank_array(shape, dtype)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert not array.any()
    array[...] = 7
    assert (array == 7).all()


def test_two_of_them_and_a_copy_share_nothing() -> None:
    one, other = blank_array(SHAPE, np.uint8), blank_array(SHAPE, np.uint8)
    copy = one.copy()
    one[5] = 1
    assert not other.any()
    assert not copy.any()


def test_without_memory_it_is_numpys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError):
        blank_array((1 << 46,), np.uint8)

    def refuse(n_bytes: int) -> mmap.mmap:
        raise OSError("no more maps")

    monkeypatch.setattr(blank, "private_memory", refuse)
    assert not blank_array(SHAPE, np.uint8).any()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_lesion_takes_the_memory_of_its_own_pages() -> None:
    """Whole rows of 107 in each of 77 slices are 22 MB, all between first and last voxel 93."""
    state = MaskState(blank_array(SHAPE, np.uint8))
    before = resident_bytes()
    state.words(1)[BOX.slices] = 1
    state.membership(1)[BOX.slices] = 1
    assert resident_bytes() - before < 45e6
