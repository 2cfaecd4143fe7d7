"""Checksums of labels (as uint8) and images, which a journal stores."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.volumes.inflate import crc32_of


def crc_of(labels: NDArray[np.uint8]) -> int:
    """Return the CRC-32 of a whole label array."""
    return crc32_of(np.ascontiguousarray(labels).data)


def phase_prints(case: Case) -> tuple[str, ...]:
    """Return the data type and CRC-32 of each phase's values, such as "<i2 0c1d2e3f".

    The result is empty if a phase has not been read yet.
    """
    if not case.is_loaded:
        return ()
    prints = []
    for index, volume in enumerate(case.signal):
        report_progress(index, len(case.signal), "Computing checksums of the images")
        values: NDArray[Any] = np.ascontiguousarray(volume)
        prints.append(f"{values.dtype.str} {crc32_of(values.data):08x}")
    return tuple(prints)


def as_labels(labels: LabelMap) -> LabelMap:
    """Return a label map of uint8 values; soft masks become 0 and 1.

    Raises
    ------
    FormatError
        If values are not whole numbers from 0 to 255.
    """
    crop = labels.crop
    if crop.dtype == np.uint8:
        return labels
    if np.issubdtype(crop.dtype, np.floating) and np.any(crop != np.rint(crop)):
        return replace(labels, crop=(crop >= 0.5).astype(np.uint8))
    if crop.size and (crop.min() < 0 or crop.max() > 255):
        raise FormatError(
            f"expected the labels in {labels.source or 'the mask'} to be from 0 to 255, but they "
            f"are {crop.min()} to {crop.max()}: use smaller values for the structures"
        )
    return replace(labels, crop=crop.astype(np.uint8))
