"""A smooth field with a level line that is displayed as the outline of a mask."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

CHANNELS: Final = 4
LEVEL: Final = 127.5 / 255
"""Value of the field along the outline, between 0 (outside) and 1; no voxel centre has it."""

_SIGMA_VOXELS: Final = 0.7
_RADIUS: Final = 2
_WHOLE: Final = 255


class OutlineField(NamedTuple):
    """A field around the labels of a slice, with its position in the slice.

    `values` are uint8 ``(rows, columns, CHANNELS)``; `channel_of` gives the channel of a label.
    `row` and `column` are below 0 if labels touch the slice's border.
    """

    values: NDArray[np.uint8]
    row: int
    column: int


def channel_of(label: int, first: int = 0) -> int:
    """Return the channel of a label; if `first` is not 0, channel 0 is reserved for it.

    Examples
    --------
    >>> [channel_of(label) for label in (1, 2, 5)], [channel_of(label, 5) for label in (1, 2, 5)]
    ([0, 1, 0], [1, 2, 0])
    """
    if not first:
        return (label - 1) % CHANNELS
    return 0 if label == first else 1 + (label - 1) % (CHANNELS - 1)


def find_outline_field(labels: NDArray[np.uint8], first: int = 0) -> OutlineField | None:
    """Return the field of the outlines in a slice, or None if it has no label.

    Each label is blurred by 0.7 voxels, which removes steps from the line at `LEVEL`. The line
    still separates the centres of all labelled voxels from all other voxels: voxels that the blur
    would remove, such as a single voxel or a thin oblique spicule, keep their value.

    Parameters
    ----------
    labels
        A slice ``(rows, columns)``, which is 0 outside the labels.
    first
        The label that has its own channel (see `channel_of`), or 0.

    Source: the width of the blur by measurement against a mask of true circles.
    """
    sides = [np.flatnonzero(labels.any(axis=1 - axis)) for axis in range(2)]
    if not sides[0].size:
        return None
    low = [int(side[0]) for side in sides]
    part = labels[low[0] : int(sides[0][-1]) + 1, low[1] : int(sides[1][-1]) + 1]
    part = np.pad(part, _RADIUS)
    values = np.zeros((*part.shape, CHANNELS), np.uint8)
    there = np.flatnonzero(np.bincount(part.ravel()))[1:].tolist()
    for channel in {channel_of(label, first) for label in there}:
        shared = [label for label in there if channel_of(label, first) == channel]
        values[..., channel] = _blur_mask(np.isin(part, shared))
    return OutlineField(values, low[0] - _RADIUS, low[1] - _RADIUS)


def _blur_mask(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    whole = mask * np.float32(_WHOLE)
    blurred = gaussian_filter(whole, _SIGMA_VOXELS, mode="constant", radius=_RADIUS)
    values: NDArray[np.uint8] = np.rint(blurred).astype(np.uint8)
    misses = (values > LEVEL * _WHOLE) != mask
    values[misses] = whole[misses]
    return values
