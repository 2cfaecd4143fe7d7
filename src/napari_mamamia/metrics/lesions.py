"""Counting lesions: which of the reference's were found, which of the prediction's are false."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.metrics.crop import joint_crop

_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)
"""Voxels that share a face, an edge or a corner are one lesion (26 neighbours)."""


@dataclass(frozen=True, slots=True)
class LesionCounts:
    """Connected parts of two masks, matched by overlap.

    `found` and `missed` count lesions of the reference, with and without a shared voxel; `false`
    counts parts of the prediction that share none. One predicted part may find several lesions,
    and several parts may find one lesion: none of them is false then.
    """

    found: int
    missed: int
    false: int


def lesion_counts(reference: NDArray[np.bool_], prediction: NDArray[np.bool_]) -> LesionCounts:
    """Return how many lesions were found, missed and falsely predicted; all 0 for empty masks.

    Both are bool (z, y, x) of one shape; other shapes raise `GridMismatchError`. A lesion is a
    26-connected part, and one shared voxel is enough to find it.

    Examples
    --------
    >>> reference = np.array([[[True, True, False, False, True, False, False]]])
    >>> prediction = np.array([[[False, True, False, False, False, False, True]]])
    >>> lesion_counts(reference, prediction)
    LesionCounts(found=1, missed=1, false=1)
    """
    reference, prediction = joint_crop(reference, prediction)
    found, n_lesions = _overlapped(reference, prediction)
    true, n_parts = _overlapped(prediction, reference)
    return LesionCounts(found, n_lesions - found, n_parts - true)


def _overlapped(mask: NDArray[np.bool_], other: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many parts of `mask` share a voxel with `other`, and how many there are."""
    label: Any = ndimage.label  # type: ignore[attr-defined, unused-ignore]
    parts, n_parts = label(mask, structure=_TOUCHING)
    touched = np.unique(parts[mask & other])
    return int(touched.size), int(n_parts)
