"""Keep lesion numbers stable while the mask changes, so that answers stay with their lesion.

Up to 16 evenly spaced voxels of each lesion are stored with the answers as the lesion's anchors. In
a changed mask each component gets at most one number. The assignment maximises the sum, over all
numbers, of the fraction of a number's anchors that lie in its component. A new component gets the
smallest free number. A lesion that is erased or merged with another lesion keeps its number and
anchors, and regains the number when it is drawn again. The rule and the limit are our choice.
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
"""A value smaller than any difference between sums of anchor fractions, used to break ties."""


@dataclass(frozen=True, slots=True)
class LesionNumbers:
    """The number of each component of a mask.

    Parameters
    ----------
    names
        The number of each numbered component.
    joined
        Merged lesions: (number without a component, number of the component with most of its
        anchors).
    parted
        Split lesions: (number of the component, number of the lesion whose anchors it contains).
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
    """Return the numbers of the components of a changed mask.

    Parameters
    ----------
    held
        For each previous number, the component that contains each of its anchors, or -1 for
        background.
    order
        All components, in the order in which they get new numbers.
    n_most
        Maximum number of numbered components; components with a previous number always keep it.
    """
    # The import is here so that the window starts without scipy.
    from scipy.optimize import linear_sum_assignment

    names = sorted(held, key=rank_name)
    touched = {part for places in held.values() for part in places if part >= 0}
    parts = [part for part in order if part in touched]
    column = {part: index for index, part in enumerate(parts)}
    share = np.zeros((len(names), len(parts)))
    for row, name in enumerate(names):
        for part, n in Counter(part for part in held[name] if part >= 0).items():
            share[row, column[part]] = n / len(held[name])
    # On a tie, the smaller number keeps the component, and the earlier component keeps the
    # number.
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
    """Return a sort key for lesion numbers that puts "2" before "10"."""
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
    """Return the anchors of all numbered lesions: those in the mask and those that have answers.

    The number of a removed lesion without answers becomes free again.
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
    # A lesion without anchors is also kept, so that no new component takes its number.
    return (*lesions, *(before.get(name, LesionAnchors(name, ())) for name in lost))


def list_lost(answers: Answers, facts: CaseFacts) -> tuple[str, ...]:
    """Return the numbers of lesions that have answers but no component in the mask."""
    if facts.lesions is None:
        return ()
    names = {lesion.name for lesion in facts.lesions}
    return tuple(sorted(answers.described - names, key=rank_name))
