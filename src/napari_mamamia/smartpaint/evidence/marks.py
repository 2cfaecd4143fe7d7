"""Marks: what a reader's strokes have said of each voxel of a label, as one uint16 array.

A voxel that nothing was said of is 0, so that memory is handed out only where somebody painted and
a difference of two arrays says what a step changed. The bits of a mark:

======  ========================================================================================
0 to 7  pull, int8: -100 to 100 stands for -1 (outside) to 1 (inside), 0 for nothing said
8, 9    hold: 1 the voxel is inside whatever the image says, 2 outside, 0 the image decides
10, 11  count: how many strokes of the pull's sign have asked for it in vain, 0 to 3
12..15  seen: how many strokes could have changed it and left it as it was, 0 to 15
======  ========================================================================================
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.edits import Action

FULL_PULL: Final = 100
"""A pull of 1 as it is kept: hundredths are finer than any choice that hangs on them."""

MOST_COUNT: Final = 3
"""Strokes in vain that are counted; from so many on the whole circle is obeyed."""

MOST_SEEN: Final = 15

ONE_SEEN: Final = np.uint16(1 << 12)
"""What a word grows by where one more stroke has left its voxel, until it is `MOST_SEEN`."""

_HIGH_SHIFT: Final = 8
_COUNT_SHIFT: Final = 10
_SEEN_SHIFT: Final = 12
_INSIDE: Final = 1
_OUTSIDE: Final = 2

Bools = NDArray[np.bool_]
Words = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Marks of a box, taken apart.

    `pull` is float32 -1 to 1, `hold` int8 -1, 0 or 1, `count` uint8 0 to 3, `seen` uint8 0 to 15.
    """

    pull: NDArray[np.float32]
    hold: NDArray[np.int8]
    count: NDArray[np.uint8]
    seen: NDArray[np.uint8]


def unpack_marks(words: Words) -> Marks:
    """Return the marks in an array of words, each array of its shape and new."""
    pull = words.astype(np.uint8).view(np.int8).astype(np.float32)
    pull /= np.float32(FULL_PULL)
    # Bytes from here on: twice as many of them are worked on at a time.
    high = (words >> _HIGH_SHIFT).astype(np.uint8)
    hold = (high & _INSIDE).view(np.int8)
    hold -= ((high & _OUTSIDE) >> 1).view(np.int8)
    count: NDArray[np.uint8] = high >> np.uint8(_COUNT_SHIFT - _HIGH_SHIFT)
    count &= MOST_COUNT
    high >>= _SEEN_SHIFT - _HIGH_SHIFT
    return Marks(pull, hold, count, high)


def pack_marks(marks: Marks) -> Words:
    """Return marks as words; a pull is rounded to a hundredth, halves to even."""
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
    """Mark voxels as surely inside (add) or outside (erase), in place.

    So marks what is not a stroke of evidence: a plain sphere, napari's own brush, a part that was
    removed.
    """
    sign = 1 if action is Action.ADD else -1
    pull, hold = np.full(1, sign, np.float32), np.full(1, sign, np.int8)
    none = np.zeros(1, np.uint8)
    words[where] = pack_marks(Marks(pull, hold, none, none))[0]
