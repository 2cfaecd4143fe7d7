"""Compare the readings of a case: matched lesions, disagreements, and a consensus mask.

`make_consensus` only returns the bytes of a mask file; `ReviewSession.decide` stores `content`,
`rule`, `parents` and `how` with the decision.

A lesion is a 26-connected component of a mask. Its number in the reader's form is determined by the
anchors stored with the answers, otherwise by size, with "1" as the largest. Lesions are paired in
two steps of linear assignment with maximum total score (`scipy.optimize.linear_sum_assignment`; H.
W. Kuhn, Naval Res. Logist. 2 (1955) 83): first pairs with an overlap (IoU) of 0.1 or more, by IoU;
then the remaining lesions by a shared voxel (1 + IoU), or by centres less than 10 mm apart (1 -
distance / 10 mm). On a tie the larger lesions are paired. A remaining lesion that shares a voxel
with a lesion of the other reader is an additional part of it: split or merged.

The IoU threshold is that of detection (`docs/methods/detection.md`); the distance of 10 mm is our
choice.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from math import ceil, dist
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.annotations.fuse import majority_vote, staple
from napari_mamamia.core.answers import LesionAnchors, PointMm, Voxel
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.choices import TieRule
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.features.review.core.review import ConsensusRule, Triggers
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.states import CaseState, CaseView, ReadingView
from napari_mamamia.findings.form_values import pair_categories, parse_answers_text
from napari_mamamia.findings.lesion_numbers import follow_numbers
from napari_mamamia.findings.lesion_position import SAME_LESION_MM
from napari_mamamia.io.data_set.volumes import read_labels, write_labels
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX
from napari_mamamia.metrics.lesions import Parts, parts_of
from napari_mamamia.metrics.of_masks import dice, hausdorff95_mm, volume_mm3

LEAST_IOU: Final = 0.1
"""Minimum IoU for a pair of overlapping lesions. Source: `docs/methods/detection.md`."""
MOST_LESIONS: Final = 1000
"""Maximum number of lesions per mask that are matched, the largest first (our choice)."""
_TIE: Final = 1e-9
"""Difference between scores that still counts as a tie; ties favour the larger lesion."""
Places = NDArray[np.intp]
_Member = tuple[str, str]
"""A reader, and the number that the reader gave to a lesion."""
_Link = tuple[float, float, float, list[Voxel], tuple[_Member, ...]]


@dataclass(frozen=True, slots=True)
class Lesion:
    """A lesion: its number, volume, centre, and the voxel of the lesion nearest to the centre."""

    name: str
    volume_mm3: float
    centre_mm: PointMm
    voxel: Voxel


@dataclass(frozen=True, slots=True)
class MatchedLesion:
    """A lesion marked by both readers, with its number in each mask and the masks' Dice."""

    first: str
    second: str
    dsc: float


@dataclass(frozen=True, slots=True)
class LesionMatch:
    """The matched lesions of two masks.

    Parameters
    ----------
    first, second
        All considered lesions, the largest first.
    both
        Lesions marked by both readers.
    first_parts, second_parts
        Additional parts of a lesion that the other reader drew as one: (own number, other reader's
        number).
    first_alone, second_alone
        Numbers of lesions marked by one reader only.
    n_left_out
        Number of components beyond the 1,000 largest of a mask.
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
        """Return the number of lesions that only one reader marked."""
        return len(self.first_alone) + len(self.second_alone)

    @property
    def n_parts(self) -> int:
        """Return the number of additional parts of split or merged lesions."""
        return len(self.first_parts) + len(self.second_parts)

    @property
    def names(self) -> dict[str, str]:
        """Map the first reader's lesion numbers to the second's, for lesions that both marked."""
        return {one.first: one.second for one in self.both}


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The lesions of one mask by size; `of_voxel` is each voxel's lesion index, -1 for none."""

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
    """Match the lesions of two masks; a mask that is None is empty.

    Any value above 0 is a lesion. `anchors` determine the numbers of the lesions of each mask.

    Raises
    ------
    GridMismatchError
        If the masks are on different grids.
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
    ranks = []
    for voxel in voxels:
        index = np.subtract(voxel, box.start)
        is_inside = bool(np.all((index >= 0) & (index < mask.shape))) and bool(mask[tuple(index)])
        ranks.append(int(rank[parts.at(index[None])[0]]) if is_inside else -1)
    return ranks


def _rank_parts(parts: Parts) -> tuple[Places, Places]:
    order = np.argsort(-parts.voxels, kind="stable")[:MOST_LESIONS]
    rank = np.full(max(parts.n, 1), -1, dtype=np.intp)
    rank[order] = np.arange(order.size)
    return order, rank


def _find_nearest(places: Places, of_voxel: Places, centres: NDArray[np.float64]) -> Places:
    apart = ((places - centres[of_voxel]) ** 2).sum(axis=1)
    order = np.lexsort((apart, of_voxel))
    _, first = np.unique(of_voxel[order], return_index=True)
    return places[order[first]]


def _count_shared(one: Places, other: Places) -> dict[tuple[int, int], int]:
    is_counted = (one >= 0) & (other >= 0)
    pairs, counts = np.unique(
        np.stack([one[is_counted], other[is_counted]], axis=1), axis=0, return_counts=True
    )
    return {(int(a), int(b)): int(n) for (a, b), n in zip(pairs, counts, strict=True)}


def _pair_lesions(
    one: _Side, other: _Side, shared: Mapping[tuple[int, int], int]
) -> dict[int, int]:
    """Map the index of each paired lesion in the first mask to its partner in the second mask."""
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
    # Imported here, so that the window starts without scipy.
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
    whole: dict[int, tuple[int, int]] = {}
    for (a, b), n in shared.items():
        if a not in paired:
            whole[a] = max(whole.get(a, (0, -b)), (n, -b))  # the larger lesion on a tie
    parts = tuple(
        (one.lesions[a].name, other.lesions[-b].name) for a, (_, b) in sorted(whole.items())
    )
    rest = (a for a in range(len(one.lesions)) if a not in paired and a not in whole)
    return parts, tuple(one.lesions[a].name for a in rest)


def group_lesions(
    matches: Iterable[tuple[str, str, LesionMatch]],
) -> dict[str, dict[str, str]]:
    """Assign common lesion numbers in a case, by reader and the reader's own lesion number.

    Matched lesions from all pairs of readers (first, second, match) are merged into groups, the
    most similar first; ties are resolved by distance, then by size. A merge is skipped if a reader
    would have two lesions in one group. With two readers, the groups are the matched pairs. "1" is
    the lesion with the largest outline of any reader. The result does not depend on the order of
    readers and pairs.
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
    """Assign common lesion numbers to a further mask, keyed by the mask's own numbers.

    `matches` compares this mask (first) with each reader's (second). A lesion gets the number of
    the most similar lesion of any reader, each number once; other lesions get new numbers.
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


def _rank_link(dsc: float, lesion: Lesion, other: Lesion, ends: tuple[_Member, _Member]) -> _Link:
    places = sorted((lesion.voxel, other.voxel))
    apart_mm = dist(lesion.centre_mm, other.centre_mm)
    return (-dsc, apart_mm, -lesion.volume_mm3 - other.volume_mm3, places, tuple(sorted(ends)))


def _rank_lesion(lesion: Lesion, member: _Member) -> tuple[float, Voxel, _Member]:
    return -lesion.volume_mm3, lesion.voxel, member


_Drawn: TypeAlias = tuple[str, tuple[LesionAnchors, ...]]
"""The SHA-256 of a mask, and the anchors of its numbered lesions."""


@dataclass(frozen=True, slots=True)
class ReadMask:
    """A mask from the store: a boolean array ``(z, y, x)`` with its grid; None if it is empty."""

    array: NDArray[np.bool_]
    grid: Grid
    labels: LabelMap


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of comparing all pairs of readings: reasons for disagreement, and worst values.

    `dice` is the lowest Dice of all pairs, or NaN if all masks are empty.
    """

    because: tuple[str, ...] = ()
    dice: float = math.nan
    hd95_mm: float = math.nan
    volume_ratio: float = math.nan

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Return the defined numbers as strings, as stored in events."""
        pairs = (
            ("dice", self.dice),
            ("hd95_mm", self.hd95_mm),
            ("volume_ratio", self.volume_ratio),
        )
        return tuple((name, repr(value)) for name, value in pairs if not math.isnan(value))


def load_stored_labels(store: EventStore, sha256: str) -> LabelMap | None:
    """Return the labels of a stored mask, cropped to its non-zero block; see `load_stored_mask`."""
    if not sha256:
        return None
    with own_folder() as folder:
        path = folder / f"mask{MASK_SUFFIX}"
        path.write_bytes(store.get_mask(sha256))
        return read_labels(path)


def load_stored_mask(store: EventStore, sha256: str) -> ReadMask | None:
    """Return the foreground of a stored mask; None if `sha256` is "", which means an empty mask.

    Raises
    ------
    FormatError
        If the mask is missing, was changed, or cannot be read.
    """
    labels = load_stored_labels(store, sha256)
    if labels is None:
        return None
    return ReadMask(labels.mask().array, labels.grid, labels)


def compare_readings(
    store: EventStore, readings: Sequence[ReadingView], triggers: Triggers
) -> Difference:
    """Compare every pair of readings using the triggers of a study.

    Raises
    ------
    FormatError, GridMismatchError
        If a mask cannot be read, or two masks are on different grids.
    """
    masks = {reading.mask: load_stored_mask(store, reading.mask) for reading in readings}
    anchors = [parse_answers_text(reading.answers).anchors for reading in readings]
    pairs: list[Difference] = []
    answers: list[str] = []

    @cache  # several readers may have submitted an empty mask, or the same mask
    def compare(first: _Drawn, second: _Drawn) -> tuple[LesionMatch, Difference]:
        one, other = masks[first[0]], masks[second[0]]
        if one is not None and other is not None:
            require_same_grid(one.grid, other.grid, "one reading", "the other")
        match = match_masks(
            None if one is None else one.labels,
            None if other is None else other.labels,
            (first[1], second[1]),
        )
        return match, _compare_pair(one, other, triggers, match)

    for (a, at_a), (b, at_b) in combinations(zip(readings, anchors, strict=True), 2):
        match, difference = compare((a.mask, at_a), (b.mask, at_b))
        pairs.append(difference)
        has_lesions = bool(match.first or match.second)
        answers += _compare_answers(a.answers, b.answers, match.names if has_lesions else None)
    because = [text for pair in pairs for text in pair.because]
    because += answers if triggers.category else []
    return Difference(
        tuple(dict.fromkeys(because)),
        min(_list_defined(pair.dice for pair in pairs), default=math.nan),
        max(_list_defined(pair.hd95_mm for pair in pairs), default=math.nan),
        max(_list_defined(pair.volume_ratio for pair in pairs), default=math.nan),
    )


def list_acceptable(view: CaseView, case_id: str) -> tuple[ReadingView, ...]:
    """Return the readings that may be accepted, in study order.

    Raises
    ------
    CaseError
        If a reading is open, if the readings disagree, or if the case is already decided.
    """
    if view.state is CaseState.READ:
        return tuple(reading for reading in view.readings if reading.hash and reading.occasion == 0)
    because = "; ".join(view.comparison.because) if view.comparison else ""
    raise CaseError(
        f"expected all readings of {case_id} to be finished and to agree, but the state of the "
        f"case is {view.state}{f' ({because})' if because else ''}: wait, or adjudicate it"
    )


def _compare_pair(
    a: ReadMask | None, b: ReadMask | None, triggers: Triggers, match: LesionMatch
) -> Difference:
    if a is None or b is None:
        drawn = a if a is not None else b
        return _compare_emptiness(drawn is not None and bool(drawn.array.any()))
    volumes = sorted(volume_mm3(one.array, one.grid) for one in (a, b))
    if volumes[0] == 0:
        return _compare_emptiness(volumes[1] > 0)
    overlap = dice(a.array, b.array)
    hd95_mm = hausdorff95_mm(a.array, b.array, a.grid)
    ratio = volumes[1] / volumes[0]
    because = []
    if triggers.dice_below is not None and overlap < triggers.dice_below:
        because.append(f"Dice {overlap:.3f} below {triggers.dice_below:g}")
    if triggers.volume_ratio is not None and ratio > triggers.volume_ratio:
        because.append(f"volume ratio {ratio:.2f} above {triggers.volume_ratio:g}")
    if triggers.hd95_mm is not None and hd95_mm > triggers.hd95_mm:
        because.append(f"HD95 {hd95_mm:.1f} mm above {triggers.hd95_mm:g}")
    if triggers.lesion_count:
        because += _compare_lesions(match)
    return Difference(tuple(because), overlap, hd95_mm, ratio)


def _compare_emptiness(is_one_drawn: bool) -> Difference:
    return Difference(("one mask is empty",), 0.0) if is_one_drawn else Difference()


def _compare_lesions(match: LesionMatch) -> list[str]:
    n_lesions = sorted((len(match.first), len(match.second)))
    if n_lesions[0] != n_lesions[1]:
        return [f"{n_lesions[0]} and {n_lesions[1]} lesions"]
    if match.n_alone:
        return [f"same number of lesions; {match.n_alone} marked by one reader only"]
    return [f"same number of lesions; {match.n_parts} split or merged"] if match.n_parts else []


def _compare_answers(one: str, other: str, lesions: dict[str, str] | None) -> list[str]:
    return [
        f"{pair.name}: {', '.join(pair.first)} and {', '.join(pair.second)}"
        for pair in pair_categories(one, other, lesions)
        if not pair.is_same
    ]


def _list_defined(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


STAPLE_MARGIN_MM: Final = 10.0
"""Margin around the masks, in mm, within which STAPLE uses voxels.

STAPLE's prior depends on the field of view. The crop is therefore fixed and reported. Our choice;
`docs/methods/review.md` shows its effect.
"""
STAPLE_READERS: Final = 3
"""Minimum number of readers for STAPLE, which cannot resolve differences between only two."""

_TIES: Final = {
    ConsensusRule.MAJORITY_BACKGROUND: TieRule.BACKGROUND,
    ConsensusRule.MAJORITY_FOREGROUND: TieRule.FOREGROUND,
    ConsensusRule.MAJORITY_THIRD: TieRule.FIRST,
}
Masks = list[NDArray[np.uint8]]
How = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ConsensusMask:
    """A mask derived from several readings.

    Parameters
    ----------
    rule
        The consensus rule.
    labels
        The mask, 0 and 1; None if no reading has a mask.
    content
        The mask file as stored (NIfTI, compressed); None if `labels` is None.
    parents
        SHA-256 of the source masks, in the order of the readings.
    how
        Parameters as strings, by name: readers, ties, crop, and STAPLE's estimates for each reader.
    """

    rule: ConsensusRule
    labels: LabelMap | None
    content: bytes | None
    parents: tuple[str, ...]
    how: How


def make_consensus(
    store: EventStore,
    readings: Sequence[ReadingView],
    rule: ConsensusRule,
    third: ReadingView | None = None,
) -> ConsensusMask:
    """Derive one mask from the readings of a case by a consensus rule.

    A reading without a mask votes for background everywhere. A majority is more than half of the
    readings. `union` takes voxels of any reading and `intersection` voxels of all readings.
    `staple` estimates the truth from the voxels within 10 mm of any mask.

    Parameters
    ----------
    store
        The study.
    readings
        Two or more; three or more for STAPLE.
    rule
        The consensus rule.
    third
        Reading that breaks the ties of `majority-third-reader` if the number of readings is even:
        one of the readings if there are four or more, or a further reading.

    Raises
    ------
    CaseError
        If there are too few readings, or ties remain unresolved.
    FormatError, GridMismatchError
        If a mask is missing, changed or damaged, or two masks are on different grids.
    """
    voters = _order_voters(readings, rule, third)
    labels_read = [load_stored_labels(store, voter.mask) for voter in voters]
    who = [(voter.reader, labels) for voter, labels in zip(voters, labels_read, strict=True)]
    parents = tuple(dict.fromkeys(voter.mask for voter in voters if voter.mask))
    how = (("readers", ", ".join(voter.reader for voter in voters)),)
    drawn = [(reader, labels) for reader, labels in who if labels is not None]
    if not drawn:
        return ConsensusMask(rule, None, None, (), how)
    grid = drawn[0][1].grid
    for reader, labels in drawn[1:]:
        require_same_grid(grid, labels.grid, f"the mask of {drawn[0][0]}", f"that of {reader}")
    box = Box.empty()
    for _, labels in drawn:
        box = box.union(labels.box)
    box = _widen_box(box, rule, grid)
    masks = [_cut_mask(labels, box) for labels in labels_read]
    fused, more = _fuse_masks(masks, rule, [voter.reader for voter in voters], grid)
    joint = LabelMap(grid, box, fused.astype(np.uint8))
    return ConsensusMask(rule, joint, _make_file(joint), parents, (*how, *more))


def _order_voters(
    readings: Sequence[ReadingView], rule: ConsensusRule, third: ReadingView | None
) -> list[ReadingView]:
    """Return the readings that vote, beginning with the one that breaks ties."""
    least = STAPLE_READERS if rule is ConsensusRule.STAPLE else 2
    if len(readings) < least:
        raise CaseError(
            f"expected at least {least} readings for the rule {rule}, but found {len(readings)}: "
            + (
                "with two readers, use one of the readings, or edit the mask"
                if rule is ConsensusRule.STAPLE
                else "wait for another reading"
            )
        )
    if rule is not ConsensusRule.MAJORITY_THIRD or len(readings) % 2:
        return list(readings)
    place = None if third is None else (third.reader, third.occasion, third.round)
    others = [
        reading
        for reading in readings
        if (reading.reader, reading.occasion, reading.round) != place
    ]
    if third is None or (len(others) < len(readings) and len(readings) == 2):
        raise CaseError(
            f"expected a third reader to break ties between {len(readings)} readings, but found "
            f"{'nobody' if third is None else 'one of the two'}: choose a third reader, or use a "
            "different rule"
        )
    return [third, *others]


def _widen_box(box: Box, rule: ConsensusRule, grid: Grid) -> Box:
    if rule is not ConsensusRule.STAPLE or box.is_empty:
        return box
    margin = tuple(ceil(STAPLE_MARGIN_MM / step) for step in grid.spacing_mm)
    return box.grown(margin, grid.shape)


def _cut_mask(labels: LabelMap | None, box: Box) -> NDArray[np.uint8]:
    if labels is None:
        return np.zeros(box.shape, np.uint8)
    return (labels.cut(box) > 0).astype(np.uint8)


def _fuse_masks(
    masks: Masks, rule: ConsensusRule, readers: Sequence[str], grid: Grid
) -> tuple[NDArray[np.bool_], How]:
    if not masks[0].size:
        return masks[0].astype(np.bool_), ()
    if rule is ConsensusRule.STAPLE:
        return _estimate_truth(masks, readers, grid)
    if rule is ConsensusRule.UNION:
        return np.any(masks, axis=0), ()
    if rule is ConsensusRule.INTERSECTION:
        return np.all(masks, axis=0), ()
    tie = _TIES[rule]
    who = f"as {readers[0]}" if tie is TieRule.FIRST else tie.value
    how = (("ties", "none are possible" if len(masks) % 2 else who),)
    return majority_vote(masks, tie) > 0, how


def _estimate_truth(
    masks: Masks, readers: Sequence[str], grid: Grid
) -> tuple[NDArray[np.bool_], How]:
    away = ndimage.distance_transform_edt(~np.any(masks, axis=0), sampling=grid.spacing_mm)
    near = away <= STAPLE_MARGIN_MM
    flat = [mask[near].astype(np.bool_).reshape(1, 1, -1) for mask in masks]
    truth = staple(flat)
    mask = np.zeros(near.shape, np.bool_)
    mask[near] = truth.mask.ravel()
    how = [("crop", f"voxels within {STAPLE_MARGIN_MM:g} mm of the union")]
    for reader, p, q in zip(readers, truth.sensitivities, truth.specificities, strict=True):
        how += [(f"sensitivity of {reader}", f"{p:.6f}"), (f"specificity of {reader}", f"{q:.6f}")]
    return mask, tuple(how)


def _make_file(labels: LabelMap) -> bytes:
    with own_folder() as folder:
        path = folder / f"consensus{MASK_SUFFIX}"
        write_labels(labels, path)
        return path.read_bytes()
