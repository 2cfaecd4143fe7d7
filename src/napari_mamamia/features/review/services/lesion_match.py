"""Lesions of two readers of a case, matched one by one: which of them both marked, which one alone.

A lesion is a 26-connected part of a mask and has the number that its reader's form calls it by: by
the anchors that came with the answers, else by size, "1" the largest. Pairs are made in two steps,
each so that the sum over all pairs is as large as can be (linear assignment,
`scipy.optimize.linear_sum_assignment`; H. W. Kuhn, Naval Res. Logist. 2 (1955) 83): first of those
whose overlap (IoU) is 0.1 or more, by IoU; then of what is left on both sides, by a shared voxel
(1 + IoU), else by place where the centres lie less than 10 mm apart (1 - distance / 10 mm). Of
equal sums the larger lesions come first. A lesion that is left then and shares a voxel with one of
the other reader's is a further part of that one: split, or joined.

The threshold of IoU is that of detection (`docs/methods/detection.md`), the 10 mm are ours.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import dist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.answers import LesionAnchors, PointMm, Voxel
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.findings.lesion_numbers import follow_numbers
from napari_mamamia.findings.lesion_position import SAME_LESION_MM
from napari_mamamia.metrics.lesions import Parts, parts_of

LEAST_IOU: Final = 0.1
"""Of a pair by overlap. Source: `docs/methods/detection.md`, as of a lesion that is found."""
MOST_LESIONS: Final = 1000
"""Of a mask, the largest: what noise has beyond is counted and not matched. Our choice."""
_TIE: Final = 1e-9
"""Of sums that differ by less, that of the larger lesions."""
Places = NDArray[np.intp]
_Member = tuple[str, str]
"""A reader and the number that this reader's lesion has."""
_Link = tuple[float, float, float, list[Voxel], tuple[_Member, ...]]


@dataclass(frozen=True, slots=True)
class Lesion:
    """One lesion: its number, its volume, the mean of its voxels, and the voxel nearest to that."""

    name: str
    volume_mm3: float
    centre_mm: PointMm
    voxel: Voxel


@dataclass(frozen=True, slots=True)
class MatchedLesion:
    """A lesion that both marked: its number in either mask, and the Dice of the two outlines."""

    first: str
    second: str
    dsc: float


@dataclass(frozen=True, slots=True)
class LesionMatch:
    """The lesions of two masks.

    Parameters
    ----------
    first, second
        All that were looked at, the largest first.
    both
        Marked by both.
    first_parts, second_parts
        Further parts of one that the other has as one: (own number, the other's).
    first_alone, second_alone
        Numbers of those that the other has not.
    n_left_out
        Parts beyond the 1,000 largest of a mask.
    """

    first: tuple[Lesion, ...] = ()
    second: tuple[Lesion, ...] = ()
    both: tuple[MatchedLesion, ...] = ()
    first_parts: tuple[tuple[str, str], ...] = ()
    second_parts: tuple[tuple[str, str], ...] = ()
    first_alone: tuple[str, ...] = ()
    second_alone: tuple[str, ...] = ()
    n_left_out: int = 0

    @property
    def n_alone(self) -> int:
        """Lesions that one of the two has and the other has not."""
        return len(self.first_alone) + len(self.second_alone)

    @property
    def n_parts(self) -> int:
        """Further parts of lesions that were split, or joined."""
        return len(self.first_parts) + len(self.second_parts)

    @property
    def names(self) -> dict[str, str]:
        """The second's number of each lesion that both marked, by the first's."""
        return {one.first: one.second for one in self.both}


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The lesions of one mask in order of size, and the place of each voxel's among them or -1."""

    lesions: tuple[Lesion, ...]
    of_voxel: Places
    n_voxels: Places
    centres_mm: NDArray[np.float64] = field(repr=False)
    n_left_out: int = 0


def match_masks(
    first: LabelMap | None,
    second: LabelMap | None,
    anchors: tuple[Sequence[LesionAnchors], Sequence[LesionAnchors]] = ((), ()),
) -> LesionMatch:
    """Return the lesions of two masks, matched; None is one in which nothing is drawn.

    Any value above 0 is lesion. `anchors` say which number a lesion has, of either mask.

    Raises
    ------
    GridMismatchError
        If they lie on different grids.
    """
    drawn = [one for one in (first, second) if one is not None]
    if not drawn:
        return LesionMatch()
    require_same_grid(drawn[0].grid, drawn[-1].grid, "one mask", "the other")
    grid, box = drawn[0].grid, drawn[0].box.union(drawn[-1].box)
    if box.is_empty:
        return LesionMatch()
    masks = [
        np.zeros(box.shape, np.bool_) if one is None else one.cut(box) > 0
        for one in (first, second)
    ]
    one, other = (_list_side(masks[k], box, grid, anchors[k]) for k in (0, 1))
    both = masks[0] & masks[1]
    shared = _count_shared(one.of_voxel[both[masks[0]]], other.of_voxel[both[masks[1]]])
    pairs = _pair_lesions(one, other, shared)
    return _describe_match(one, other, shared, pairs)


def _list_side(
    mask: NDArray[np.bool_], box: Box, grid: Grid, anchors: Sequence[LesionAnchors]
) -> _Side:
    parts = parts_of(mask)
    order, rank = _rank_parts(parts)
    held = {anchor.name: _find_ranks(anchor.voxels, mask, box, parts, rank) for anchor in anchors}
    names = follow_numbers(held, range(order.size), order.size).names
    places = np.argwhere(mask)
    of_voxel = rank[parts.at(places)] if parts.n else np.zeros(0, dtype=np.intp)
    counted = places[of_voxel >= 0], of_voxel[of_voxel >= 0]
    n_voxels = np.bincount(counted[1], minlength=order.size)
    sums = np.stack(
        [np.bincount(counted[1], counted[0][:, axis], order.size) for axis in range(3)], axis=1
    )
    centres = sums / np.maximum(n_voxels, 1)[:, None] + np.array(box.start)
    nearest = _find_nearest(counted[0] + np.array(box.start), counted[1], centres)
    centres_mm = grid.to_world_mm(centres) if order.size else np.zeros((0, 3))
    lesions = tuple(
        Lesion(
            names[index],
            float(n_voxels[index]) * grid.voxel_volume_mm3,
            _as_point(centres_mm[index]),
            _as_voxel(nearest[index]),
        )
        for index in range(order.size)
    )
    return _Side(lesions, of_voxel, n_voxels, centres_mm, parts.n - order.size)


def _as_point(values: NDArray[np.float64]) -> PointMm:
    x, y, z = map(float, values)
    return x, y, z


def _as_voxel(values: Places) -> Voxel:
    z, y, x = map(int, values)
    return z, y, x


def _find_ranks(
    voxels: Sequence[Voxel], mask: NDArray[np.bool_], box: Box, parts: Parts, rank: Places
) -> list[int]:
    """Return the place by size of the part that each voxel lies in, -1 for none."""
    ranks = []
    for voxel in voxels:
        index = np.subtract(voxel, box.start)
        is_inside = bool(np.all((index >= 0) & (index < mask.shape))) and bool(mask[tuple(index)])
        ranks.append(int(rank[parts.at(index[None])[0]]) if is_inside else -1)
    return ranks


def _rank_parts(parts: Parts) -> tuple[Places, Places]:
    """Return the parts that count, the largest first, and the place of each among them or -1."""
    order = np.argsort(-parts.voxels, kind="stable")[:MOST_LESIONS]
    rank = np.full(max(parts.n, 1), -1, dtype=np.intp)
    rank[order] = np.arange(order.size)
    return order, rank


def _find_nearest(places: Places, of_voxel: Places, centres: NDArray[np.float64]) -> Places:
    """Return of each lesion the voxel nearest to its centre, which may lie outside of it."""
    apart = ((places - centres[of_voxel]) ** 2).sum(axis=1)
    order = np.lexsort((apart, of_voxel))
    _, first = np.unique(of_voxel[order], return_index=True)
    return places[order[first]]


def _count_shared(one: Places, other: Places) -> dict[tuple[int, int], int]:
    """Return how many voxels two lesions share, of those that share any."""
    is_counted = (one >= 0) & (other >= 0)
    pairs, counts = np.unique(
        np.stack([one[is_counted], other[is_counted]], axis=1), axis=0, return_counts=True
    )
    return {(int(a), int(b)): int(n) for (a, b), n in zip(pairs, counts, strict=True)}


def _pair_lesions(
    one: _Side, other: _Side, shared: Mapping[tuple[int, int], int]
) -> dict[int, int]:
    """Return the place of the second's lesion by that of the first's."""
    overlap = {
        (a, b): n / float(one.n_voxels[a] + other.n_voxels[b] - n) for (a, b), n in shared.items()
    }
    shape = len(one.lesions), len(other.lesions)
    pairs = _assign_best({k: iou for k, iou in overlap.items() if iou >= LEAST_IOU}, shape)
    taken = set(pairs.values())
    near = {(a, b): 1 + iou for (a, b), iou in overlap.items() if a not in pairs and b not in taken}
    rest = [a for a in range(shape[0]) if a not in pairs]
    others = [b for b in range(shape[1]) if b not in taken]
    if rest and others:
        apart = one.centres_mm[rest][:, None] - other.centres_mm[others][None]
        apart_mm = np.sqrt((apart**2).sum(axis=2))
        for k, m in np.argwhere(apart_mm < SAME_LESION_MM):
            near.setdefault((rest[k], others[m]), 1 - float(apart_mm[k, m]) / SAME_LESION_MM)
    return pairs | _assign_best(near, shape)


def _assign_best(gains: Mapping[tuple[int, int], float], shape: tuple[int, int]) -> dict[int, int]:
    """Return the pairs whose gains have the largest sum, each lesion in one at most."""
    # By who uses it: a window starts without it.
    from scipy.optimize import linear_sum_assignment

    gain = np.zeros(shape)
    for (a, b), value in gains.items():
        gain[a, b] = value + _TIE * (shape[0] - a) * (shape[1] - b) / (shape[0] * shape[1])
    rows, columns = linear_sum_assignment(gain, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {a: b for a, b in pairs if (a, b) in gains}


def _describe_match(
    one: _Side, other: _Side, shared: Mapping[tuple[int, int], int], pairs: Mapping[int, int]
) -> LesionMatch:
    both = tuple(
        MatchedLesion(
            one.lesions[a].name,
            other.lesions[b].name,
            2 * shared.get((a, b), 0) / float(one.n_voxels[a] + other.n_voxels[b]),
        )
        for a, b in sorted(pairs.items())
    )
    turned = {(b, a): n for (a, b), n in shared.items()}
    first_parts, first_alone = _tell_rest(one, other, set(pairs), shared)
    second_parts, second_alone = _tell_rest(other, one, set(pairs.values()), turned)
    return LesionMatch(
        one.lesions,
        other.lesions,
        both,
        first_parts,
        second_parts,
        first_alone,
        second_alone,
        one.n_left_out + other.n_left_out,
    )


def _tell_rest(
    one: _Side, other: _Side, paired: set[int], shared: Mapping[tuple[int, int], int]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return of what has no pair the further parts, with what they are of, and the lone ones."""
    whole: dict[int, tuple[int, int]] = {}
    for (a, b), n in shared.items():
        if a not in paired:
            whole[a] = max(whole.get(a, (0, -b)), (n, -b))  # of equals the larger lesion
    parts = tuple(
        (one.lesions[a].name, other.lesions[-b].name) for a, (_, b) in sorted(whole.items())
    )
    rest = (a for a in range(len(one.lesions)) if a not in paired and a not in whole)
    return parts, tuple(one.lesions[a].name for a in rest)


def group_lesions(
    matches: Iterable[tuple[str, str, LesionMatch]],
) -> dict[str, dict[str, str]]:
    """Return one number for each lesion of a case over all its readers: reader, own number, number.

    Of all pairs of readers (first, second, match) the pairs of lesions are joined, the most alike
    first, of equals the nearest, then the largest, where no reader would have two in one group; of
    two readers these are their pairs. "1" is the lesion that anybody drew largest. In which order
    readers and pairs come changes nothing.
    """
    links = []
    lesions: dict[_Member, Lesion] = {}
    for first, second, match in matches:
        ones = {one.name: one for one in match.first}
        others = {one.name: one for one in match.second}
        lesions |= {(first, name): one for name, one in ones.items()}
        lesions |= {(second, name): other for name, other in others.items()}
        for pair in match.both:
            ends = ((first, pair.first), (second, pair.second))
            links.append(_rank_link(pair.dsc, ones[pair.first], others[pair.second], ends))
    group: dict[_Member, tuple[_Member, ...]] = {lesion: (lesion,) for lesion in lesions}
    for *_, (one_lesion, other_lesion) in sorted(links):
        members, others_there = group[one_lesion], group[other_lesion]
        if not {reader for reader, _ in members} & {reader for reader, _ in others_there}:
            for lesion in (*members, *others_there):
                group[lesion] = (*members, *others_there)
    in_order = sorted(
        {frozenset(members) for members in group.values()},
        key=lambda members: min(_rank_lesion(lesions[member], member) for member in members),
    )
    names: dict[str, dict[str, str]] = {reader: {} for reader, _ in lesions}
    for number, lesion_group in enumerate(in_order, start=1):
        for reader, name in sorted(lesion_group):
            names[reader][name] = str(number)
    return names


def join_lesions(
    numbers: Mapping[str, Mapping[str, str]], matches: Mapping[str, LesionMatch]
) -> dict[str, str]:
    """Return the numbers of the lesions of a further mask by those of all readers, by its own.

    `matches` are this mask (first) and each reader's (second). A lesion has the number of the one
    that is most like it of any reader's, each number once; what nobody drew has further numbers.
    """
    links = sorted(
        (-pair.dsc, numbers[reader][pair.second], pair.first)
        for reader, match in matches.items()
        for pair in match.both
    )
    names: dict[str, str] = {}
    for _, number, name in links:
        if name not in names and number not in names.values():
            names[name] = number
    n_known = max((int(one) for each in numbers.values() for one in each.values()), default=0)
    own_lesions = next((match.first for match in matches.values()), ())
    rest = [lesion.name for lesion in own_lesions if lesion.name not in names]
    return names | {name: str(n_known + index) for index, name in enumerate(rest, start=1)}


def _rank_link(dsc: float, one: Lesion, other: Lesion, ends: tuple[_Member, _Member]) -> _Link:
    places = sorted((one.voxel, other.voxel))
    apart_mm = dist(one.centre_mm, other.centre_mm)
    return (-dsc, apart_mm, -one.volume_mm3 - other.volume_mm3, places, tuple(sorted(ends)))


def _rank_lesion(one: Lesion, member: _Member) -> tuple[float, Voxel, _Member]:
    return -one.volume_mm3, one.voxel, member
