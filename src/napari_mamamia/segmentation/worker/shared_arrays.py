"""Share arrays with another process on this computer through files in memory.

Each request has its own folder of such files, which is removed after the request.
`multiprocessing.shared_memory` is not used, because up to Python 3.12 its tracker in the second
process removes and reports memory that belongs to the first process.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.files.own_paths import own_folder, temporary_places

_BLOCK: Final = 2**25


@dataclass(frozen=True, slots=True)
class SharedArray:
    """Location of an array: its file name in the request's folder, NumPy type and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@contextmanager
def shared_folder(n_bytes: int) -> Iterator[Path]:
    """Create a folder for arrays of `n_bytes` in total, and remove it at the end of the block.

    The folder is in shared memory if there is enough space, otherwise in the system's temporary
    folder.
    """
    places = temporary_places()
    place = next((place for place in places if _has_room(place, n_bytes)), None)
    if place is None:
        raise SaveError(
            f"expected {' or '.join(map(str, places))} to have room for {n_bytes / 1e9:.2f} GB of "
            "data for the model's process, but less is free; free some space"
        )
    with own_folder(place) as folder:
        yield folder


def share(folder: Path, name: str, array: NDArray[Any]) -> SharedArray:
    """Write an array to a request's folder.

    Raises
    ------
    SaveError
        If there is not enough space.
    """
    whole = np.ascontiguousarray(array)
    path = folder / name
    try:
        with path.open("xb") as stream:
            if hasattr(os, "posix_fallocate") and whole.nbytes:
                os.posix_fallocate(stream.fileno(), 0, whole.nbytes)  # memory that does not exist
            view = whole.reshape(-1).view(np.uint8).data  # would otherwise crash the process
            for first in range(0, whole.nbytes, _BLOCK):
                stream.write(view[first : first + _BLOCK])
    except OSError as error:
        raise SaveError(
            f"passing {whole.nbytes / 1e6:.0f} MB to the model's process failed at "
            f"{folder.parent} ({error.strerror or error}); free some memory or space"
        ) from error
    return SharedArray(name, whole.dtype.str, whole.shape)


def fetch(folder: Path, shared: SharedArray) -> NDArray[Any]:
    """Return an array from a request's folder (copy-on-write), and unlink its file at once.

    Where the system allows it, the memory is released together with the array, even if a process
    crashes.
    """
    path = folder / shared.name
    array: NDArray[Any] = np.memmap(path, dtype=shared.dtype, mode="c", shape=shared.shape)
    with suppress(OSError):  # Windows keeps a mapped file; the owner of the folder removes it later
        path.unlink()
    return array.view(np.ndarray)


def _has_room(place: Path, n_bytes: int) -> bool:
    try:
        return shutil.disk_usage(place).free > n_bytes + _BLOCK
    except OSError:
        return False
