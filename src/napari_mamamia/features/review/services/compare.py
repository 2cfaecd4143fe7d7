"""Find disagreement between the readings of a case, by the triggers of the study."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.answers import LesionAnchors
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.features.review.core.review import Triggers
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.rules.views import CaseView, ReadingView
from napari_mamamia.features.review.services.lesion_match import LesionMatch, match_masks
from napari_mamamia.findings.form_values import pair_categories, parse_answers_text
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX
from napari_mamamia.metrics.of_masks import dice, hausdorff95_mm, volume_mm3

_Drawn: TypeAlias = tuple[str, tuple[LesionAnchors, ...]]
"""The SHA-256 of a mask, and the anchors of its numbered lesions."""


@dataclass(frozen=True, slots=True)
class ReadMask:
    """A mask of the store: bool ``(z, y, x)`` with its grid; None for an empty mask."""

    array: NDArray[np.bool_]
    grid: Grid
    labels: LabelMap


@dataclass(frozen=True, slots=True)
class Difference:
    """Result of comparing all pairs of readings: reasons for disagreement, and the worst values.

    `dice` is the lowest Dice of all pairs, NaN if all masks are empty.
    """

    because: tuple[str, ...] = ()
    dice: float = math.nan
    hd95_mm: float = math.nan
    volume_ratio: float = math.nan

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Return the defined numbers as texts, as stored in events."""
        pairs = (
            ("dice", self.dice),
            ("hd95_mm", self.hd95_mm),
            ("volume_ratio", self.volume_ratio),
        )
        return tuple((name, repr(value)) for name, value in pairs if not math.isnan(value))


def load_stored_labels(store: EventStore, sha256: str) -> LabelMap | None:
    """Return the labels of a stored mask as the non-zero block; see `load_stored_mask`."""
    if not sha256:
        return None
    with own_folder() as folder:
        path = folder / f"mask{MASK_SUFFIX}"
        path.write_bytes(store.get_mask(sha256))
        return read_labels(path)


def load_stored_mask(store: EventStore, sha256: str) -> ReadMask | None:
    """Return the foreground of a stored mask; None for "" (an empty mask).

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
    """Compare every pair of readings by the triggers of a study.

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
    """Return the readings that may be accepted, in order.

    Raises
    ------
    CaseError
        If a reading is open, the readings disagree, or the case is already decided.
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
    """Describe how the lesions of two readings differ: in number, location or components."""
    n_lesions = sorted((len(match.first), len(match.second)))
    if n_lesions[0] != n_lesions[1]:
        return [f"{n_lesions[0]} and {n_lesions[1]} lesions"]
    if match.n_alone:
        return [f"same number of lesions; {match.n_alone} marked by one reader only"]
    return [f"same number of lesions; {match.n_parts} split or merged"] if match.n_parts else []


def _compare_answers(one: str, other: str, lesions: dict[str, str] | None) -> list[str]:
    """Return the category questions that both readers answered differently."""
    return [
        f"{pair.name}: {', '.join(pair.first)} and {', '.join(pair.second)}"
        for pair in pair_categories(one, other, lesions)
        if not pair.is_same
    ]


def _list_defined(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
