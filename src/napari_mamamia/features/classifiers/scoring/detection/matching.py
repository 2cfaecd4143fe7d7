"""Match predicted boxes with lesions by a given rule, and find the false positives."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from napari_mamamia.core.choices import DuplicateRule, LesionMatching
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.features.classifiers.scoring.detection.boxes import Numbers, Overlaps, Places

_ALMOST_ONE: Final = 1 - 1e-10
_CELLS: Final = 20_000_000
"""Maximum number of pairs that the rule `hungarian` processes at once (160 MB)."""


@dataclass(frozen=True, slots=True)
class MatchingRule:
    """A matching rule; `iou` is the minimum overlap, which the rule `any-overlap` ignores."""

    matching: LesionMatching = LesionMatching.GREEDY_SCORE
    iou: float = 0.1
    duplicates: DuplicateRule = DuplicateRule.FALSE_POSITIVE


BY_SCORE: Final = MatchingRule()


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The result of matching lesions with boxes.

    `found_by` (lesions,) is the index of the box that found each lesion, or -1; `overlap` is the
    overlap of this box with the lesion. `is_false` (boxes,) is True for false positives. All other
    boxes that did not find a lesion do not count.
    """

    found_by: Places
    overlap: Numbers
    is_false: NDArray[np.bool_]


def match_lesions(
    overlaps: Overlaps,
    scores: Numbers,
    n_lesions: int,
    rule: MatchingRule,
    sought: NDArray[np.bool_] | None = None,
) -> Matches:
    """Match the lesions and boxes of all cases.

    Parameters
    ----------
    overlaps
        Pairs of overlapping boxes and lesions.
    scores
        Scores (boxes,), which determine the order for the rule `greedy-score`. If boxes have equal
        scores, the first in the table is used; if lesions have equal overlaps, the last.
    n_lesions
        Number of lesions.
    rule
        The matching rule.
    sought
        Whether each lesion counts, (lesions,); None if all count. Lesions that count are matched
        first. If a box finds a lesion that does not count, the box does not count either.
    """
    sought = np.ones(n_lesions, dtype=np.bool_) if sought is None else sought
    least = min(rule.iou, _ALMOST_ONE)
    enough = overlaps.values >= least
    if rule.matching is LesionMatching.ANY_OVERLAP:
        enough = overlaps.values > 0
    boxes, lesions = overlaps.predictions[enough], overlaps.lesions[enough]
    values = overlaps.values[enough]
    order = _order_pairs(boxes, lesions, values, scores, sought)
    boxes, lesions, values = boxes[order], lesions[order], values[order]
    if rule.matching is LesionMatching.ANY_OVERLAP:
        _, chosen = np.unique(lesions, return_index=True)
    elif rule.matching is LesionMatching.HUNGARIAN:
        chosen = _assign_pairs(boxes, lesions, values, sought)
    else:
        chosen = _take_greedily(boxes, lesions)
    found_by = np.full(n_lesions, -1, dtype=np.intp)
    overlap = np.full(n_lesions, np.nan)
    found_by[lesions[chosen]] = boxes[chosen]
    overlap[lesions[chosen]] = values[chosen]
    is_false = np.ones(scores.size, dtype=np.bool_)
    is_false[found_by[found_by >= 0]] = False
    if rule.matching is LesionMatching.ANY_OVERLAP or rule.duplicates is DuplicateRule.IGNORED:
        is_false[boxes] = False
    found_by[~sought] = -1
    overlap[~sought] = np.nan
    return Matches(found_by, overlap, is_false)


def _order_pairs(
    boxes: Places,
    lesions: Places,
    values: Numbers,
    scores: Numbers,
    sought: NDArray[np.bool_],
) -> Places:
    rank = np.empty(scores.size, dtype=np.intp)
    rank[np.argsort(-scores, kind="stable")] = np.arange(scores.size)
    keys = (-lesions, -values, ~sought[lesions], rank[boxes])
    return np.lexsort(keys)


def _take_greedily(boxes: Places, lesions: Places) -> Places:
    taken_boxes: set[int] = set()
    taken_lesions: set[int] = set()
    chosen = []
    for index, (box, lesion) in enumerate(zip(boxes.tolist(), lesions.tolist(), strict=True)):
        if box not in taken_boxes and lesion not in taken_lesions:
            taken_boxes.add(box)
            taken_lesions.add(lesion)
            chosen.append(index)
    return np.array(chosen, dtype=np.intp)


def _assign_pairs(
    boxes: Places, lesions: Places, values: Numbers, sought: NDArray[np.bool_]
) -> Places:
    if not boxes.size:
        return np.zeros(0, dtype=np.intp)
    distinct_boxes, box_rows = np.unique(boxes, return_inverse=True)
    distinct_lesions, lesion_rows = np.unique(lesions, return_inverse=True)
    n_boxes, n_nodes = distinct_boxes.size, distinct_boxes.size + distinct_lesions.size
    links = coo_array(
        (np.ones(boxes.size), (box_rows, lesion_rows + n_boxes)), shape=(n_nodes, n_nodes)
    )
    _, component = connected_components(links, directed=False)
    of_pair = component[box_rows]
    order = np.argsort(of_pair, kind="stable")
    starts = np.flatnonzero(np.diff(of_pair[order], prepend=-1))
    chosen = [
        _assign_component(group, box_rows, lesion_rows, values, sought[lesions])
        for group in np.split(order, starts[1:])
    ]
    return np.concatenate(chosen)


def _assign_component(
    pairs: Places,
    boxes: Places,
    lesions: Places,
    values: Numbers,
    is_wanted: NDArray[np.bool_],
) -> Places:
    if pairs.size == 1:
        return pairs
    _, rows = np.unique(boxes[pairs], return_inverse=True)
    _, columns = np.unique(lesions[pairs], return_inverse=True)
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    if shape[0] * shape[1] > _CELLS:
        raise ArgumentError(
            f"expected at most {_CELLS:,} pairs of connected boxes and lesions for hungarian "
            f"matching, but found {shape[0]:,} boxes on {shape[1]:,} lesions: match by "
            "greedy-score, or leave out boxes with low scores"
        )
    # One more pair outweighs all overlaps, and one pair of a counted lesion outweighs all pairs.
    one_more = min(shape) + 1.0
    gain = np.zeros(shape)
    gain[rows, columns] = values[pairs] + one_more + one_more**2 * is_wanted[pairs]
    index_of = np.full(shape, -1, dtype=np.intp)
    index_of[rows, columns] = pairs
    chosen: Places = index_of[linear_sum_assignment(gain, maximize=True)]
    return chosen[chosen >= 0]
