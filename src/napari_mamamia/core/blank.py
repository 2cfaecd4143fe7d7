"""Large arrays of zeros of which little is ever written."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from napari_mamamia.core.program.system import private_memory

_NUMPY_ASKS_BYTES: Final = 1 << 22
"""From here on numpy asks Linux for pages of 2 MB (`madvise`, numpy 2.3)."""


def blank_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros whose memory is handed out in the system's smallest pages.

    `numpy.zeros` gives large arrays pages of 2 MB where Linux has them, each of them cleared when
    something in it is written first: the box of one lesion (77x107x115 voxels of 160x448x448,
    uint16) took 36 to 90 ms of the thread that wrote it, here 5, and took the memory of the whole
    slices. For an array that is written as a whole `numpy.zeros` is quicker.
    """
    dtype = np.dtype(dtype)
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes < _NUMPY_ASKS_BYTES:
        return np.zeros(shape, dtype)
    try:
        memory = private_memory(n_bytes)
    except OSError:
        return np.zeros(shape, dtype)  # which says in its own words that there is no memory
    return np.frombuffer(memory, dtype).reshape(shape)
