"""Marks: a uint16 array for each label that stores a reader's stroke evidence in each voxel.

A voxel without evidence is 0, so memory is allocated only where something was painted, and the
difference of two arrays shows the changes of a step. The bits of a mark are:

- 0 to 7: pull, an int8; -100 to 100 stands for -1 (outside) to 1 (inside), 0 for no evidence.
- 8 and 9: hold. With 1 the voxel is inside and with 2 outside, whatever the image shows; with 0
  the image decides.
- 10 and 11: count, 0 to 3. Number of strokes with the sign of the pull that covered the voxel
  without effect.
- 12 to 15: seen, 0 to 15. Number of strokes that could have changed the voxel but did not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.edits import Action

FULL_PULL: Final = 100
"""Stored value of a pull of 1; steps of a hundredth are finer than any decision needs."""

MOST_COUNT: Final = 3
"""Largest count of strokes without effect; at this count, the next stroke fills its whole circle.
"""

MOST_SEEN: Final = 15

ONE_SEEN: Final = np.uint16(1 << 12)
"""Increment of a mark when a stroke leaves its voxel unchanged, up to `MOST_SEEN` strokes."""

_HIGH_SHIFT: Final = 8
_COUNT_SHIFT: Final = 10
_SEEN_SHIFT: Final = 12
_INSIDE: Final = 1
_OUTSIDE: Final = 2

Bools = NDArray[np.bool_]
Words = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The marks of a box as separate arrays.

    `pull` is float32 from -1 to 1, `hold` is int8 -1, 0 or 1, `count` is uint8 from 0 to 3, and
    `seen` is uint8 from 0 to 15.
    """

    pull: NDArray[np.float32]
    hold: NDArray[np.int8]
    count: NDArray[np.uint8]
    seen: NDArray[np.uint8]


def unpack_marks(words: Words) -> Marks:
    """Return the marks that an array of words stores, as new arrays of the same shape."""
    pull = words.astype(np.uint8).view(np.int8).astype(np.float32)
    pull /= np.float32(FULL_PULL)
    # Work on bytes from here on: a vector instruction handles twice as many of them.
    high = (words >> _HIGH_SHIFT).astype(np.uint8)
    hold = (high & _INSIDE).view(np.int8)
    hold -= ((high & _OUTSIDE) >> 1).view(np.int8)
    count: NDArray[np.uint8] = high >> np.uint8(_COUNT_SHIFT - _HIGH_SHIFT)
    count &= MOST_COUNT
    high >>= _SEEN_SHIFT - _HIGH_SHIFT
    return Marks(pull, hold, count, high)


def pack_marks(marks: Marks) -> Words:
    """Return marks as words; each pull is rounded to the nearest hundredth, ties to even."""
    pull = marks.pull * np.float32(FULL_PULL)
    np.rint(pull, out=pull)
    high = np.minimum(marks.seen, MOST_SEEN)
    high <<= _SEEN_SHIFT - _COUNT_SHIFT
    high |= np.minimum(marks.count, MOST_COUNT)
    high <<= _COUNT_SHIFT - _HIGH_SHIFT
    high |= (marks.hold > 0).view(np.uint8)
    high |= (marks.hold < 0).view(np.uint8) << 1
    words: Words = high.astype(np.uint16)
    words <<= _HIGH_SHIFT
    words |= pull.astype(np.int8).view(np.uint8)
    return words


def hold_voxels(words: Words, where: Bools, action: Action) -> None:
    """Mark voxels as certainly inside (add) or outside (erase), in place.

    This is used for changes other than evidence strokes, such as a plain sphere, napari's own brush
    or a removed part.
    """
    sign = 1 if action is Action.ADD else -1
    pull, hold = np.full(1, sign, np.float32), np.full(1, sign, np.int8)
    none = np.zeros(1, np.uint8)
    words[where] = pack_marks(Marks(pull, hold, none, none))[0]
