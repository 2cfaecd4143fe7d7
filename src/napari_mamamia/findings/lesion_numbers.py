"""Which number a lesion has while its mask changes: an answer stays with what it was said of.

With the answers are kept up to 16 voxels of each lesion, spread over it: its anchors. In a mask
that was changed a number goes to the part that holds most of its anchors, each part has one number
at most, and all numbers together keep as large a share of their anchors as can be. A part that is
new takes the smallest number that nobody has. A lesion in none, because it was erased or is one
with another now, keeps its number and its anchors: drawn apart again it has them back. The rule and
the 16 are ours.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.answers import Answers, CaseFacts, LesionAnchors, Voxel

N_ANCHORS: Final = 16
_TIE: Final = 1e-8
"""Less than any two sums of shares of 16 differ by: it decides between equals alone."""


@dataclass(frozen=True, slots=True)
class LesionNumbers:
    """The numbers of a mask's parts.

    Parameters
    ----------
    names
        By the place of a part in their order, of the parts that have one.
    joined
        Numbers without a part whose anchors lie most in that of another: (number, the other).
    parted
        Numbers of parts that hold anchors of another part's number: (number, the other).
    """

    names: Mapping[int, str]
    joined: tuple[tuple[str, str], ...] = ()
    parted: tuple[tuple[str, str], ...] = ()


def pick_anchors(voxels: NDArray[np.intp]) -> tuple[Voxel, ...]:
    """Return up to 16 of a lesion's voxels (n, 3), evenly spaced in their order."""
    index = np.unique(np.linspace(0, len(voxels) - 1, min(len(voxels), N_ANCHORS)).astype(np.intp))
    return tuple((int(z), int(y), int(x)) for z, y, x in voxels[index])


def follow_numbers(
    held: Mapping[str, Sequence[int]], order: Sequence[int], n_most: int
) -> LesionNumbers:
    """Return the numbers of the parts of a mask.

    Parameters
    ----------
    held
        Of each number of before the part that each of its anchors lies in, -1 for none.
    order
        All parts, in the order in which they take numbers.
    n_most
        How many parts have a number at most; those with one of before keep it all the same.
    """
    # By who uses it: a window starts without it.
    from scipy.optimize import linear_sum_assignment

    names = sorted(held, key=rank_name)
    touched = {part for places in held.values() for part in places if part >= 0}
    parts = [part for part in order if part in touched]
    column = {part: index for index, part in enumerate(parts)}
    share = np.zeros((len(names), len(parts)))
    for row, name in enumerate(names):
        for part, n in Counter(part for part in held[name] if part >= 0).items():
            share[row, column[part]] = n / len(held[name])
    # Of equals the smaller number keeps the part, and a number the part that comes first.
    earlier = np.arange(len(names), 0, -1)[:, None] * np.arange(len(parts), 0, -1)[None]
    gain = share + np.where(share > 0, _TIE * earlier / max(1, earlier.size), 0)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    given = {
        parts[index]: names[row]
        for row, index in zip(rows.tolist(), columns.tolist(), strict=True)
        if share[row, index] > 0
    }
    joined = tuple(_list_joined(names, parts, share, given))
    free = _list_free({*names})
    for part in order[:n_most]:
        if part not in given and len(given) < n_most:
            given[part] = next(free)
    parted = tuple(_list_parted(names, parts, share, given))
    return LesionNumbers(given, joined, parted)


def rank_name(name: str) -> tuple[int, str]:
    """Return what numbers are sorted by: "2" before "10"."""
    return len(name), name


def _list_joined(
    names: Sequence[str],
    parts: Sequence[int],
    share: NDArray[np.float64],
    given: Mapping[int, str],
) -> Iterator[tuple[str, str]]:
    for row, name in enumerate(names):
        if name not in given.values() and share[row].any():
            yield name, given[parts[int(share[row].argmax())]]


def _list_parted(
    names: Sequence[str],
    parts: Sequence[int],
    share: NDArray[np.float64],
    given: Mapping[int, str],
) -> Iterator[tuple[str, str]]:
    before = set(names)
    for index, part in enumerate(parts):
        whole = [name for row, name in enumerate(names) if share[row, index] > 0]
        if whole and part in given and given[part] not in before:
            yield given[part], whole[0]


def _list_free(taken: Collection[str]) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        if str(number) not in taken:
            yield str(number)


def keep_anchors(answers: Answers, facts: CaseFacts) -> tuple[LesionAnchors, ...]:
    """Return where the lesions lie that have a number: those of the mask, and what is described.

    One that is none any more, and of which nobody said anything, gives its number back.
    """
    lesions = [
        LesionAnchors(lesion.name, lesion.anchors)
        for lesion in facts.lesions or ()
        if lesion.anchors
    ]
    lost = sorted(
        answers.described - {lesion.name for lesion in facts.lesions or ()}, key=rank_name
    )
    before = {anchor.name: anchor for anchor in answers.anchors}
    # Without anchors, too: no part that is new may take its number.
    return (*lesions, *(before.get(name, LesionAnchors(name, ())) for name in lost))


def list_lost(answers: Answers, facts: CaseFacts) -> tuple[str, ...]:
    """Return the numbers of lesions that somebody described and that the mask has not."""
    if facts.lesions is None:
        return ()
    names = {lesion.name for lesion in facts.lesions}
    return tuple(sorted(answers.described - names, key=rank_name))
