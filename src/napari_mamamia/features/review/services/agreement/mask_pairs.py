"""Compare pairs of masks, and summarise many such pairs.

The masks of a case are kept in memory while the case is compared, so that each is read once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.answers import LesionAnchors
from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.agreement import (
    Estimate,
    Floats,
    divide_all,
    estimate_mean,
    estimate_sums,
)
from napari_mamamia.features.review.rules.ratings import PairedValues, compare_values
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.views import ReadingView
from napari_mamamia.features.review.services.compare import load_stored_labels
from napari_mamamia.features.review.services.lesion_match import LesionMatch, match_masks
from napari_mamamia.findings.form_values import parse_answers_text
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.metrics import overlap, surface

NSD_TOLERANCE_MM: Final = 1.0
TRUTH: Final = "truth"
"""Name that stands for the known truth instead of a second reader."""


@dataclass(frozen=True, slots=True)
class MaskPair:
    """Comparison of two masks, symmetric except for volumes; undefined values are NaN.

    `empty` is "both", "one" or "": two empty masks agree and are counted separately. Lesions are
    counted as marked by both, marked by one only, or additional parts of a lesion that the other
    reader drew as one. `lesion_dsc` is the mean Dice of lesions marked by both.
    """

    case_id: str
    first: str
    second: str
    dsc: float
    hd95_mm: float
    nsd: float
    volume_first_mm3: float
    volume_second_mm3: float
    empty: str
    at: str = ""
    n_lesions_both: int = 0
    n_lesions_first: int = 0
    n_lesions_second: int = 0
    n_lesion_parts: int = 0
    lesion_dsc: float = nan


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Content that could not be read or compared: case, reader and reason."""

    case_id: str
    what: str
    why: str


def list_waiting(state: ReviewState) -> list[LeftOut]:
    """Return the readings that do not count yet because their mask is missing in the store."""
    return [
        LeftOut(
            state.study.case(str(refusal.event.body["case"])).case_id,
            f"the {refusal.event.body.get('act')} by {refusal.event.reader}",
            refusal.why,
        )
        for refusal in state.waiting
    ]


@dataclass(frozen=True, slots=True)
class MaskAgreement:
    """Means over cases with intervals, without pairs of two empty masks.

    Of `n` pairs, `n_both_empty` have two empty masks (agreement without a Dice) and `n_one_empty`
    have one empty mask (Dice 0, no distance).
    """

    first: str
    second: str
    n: int
    n_both_empty: int
    n_one_empty: int
    dsc: Estimate
    hd95_mm: Estimate
    nsd: Estimate


@dataclass(frozen=True, slots=True)
class LesionAgreement:
    """Agreement of two readers on lesions, over all cases read by both.

    Parameters
    ----------
    n_both, n_first, n_second, n_parts
        Numbers of lesions marked by both, marked by one only, and additional parts of a lesion that
        the other reader drew as one (split or merged).
    positive
        Positive agreement 2 both / (2 both + single). Source: Hripcsak and Rothschild, J Am Med
        Inform Assoc 12 (2005) 296.
    dsc
        Mean Dice over the lesions marked by both.
    """

    first: str
    second: str
    n_both: int
    n_first: int
    n_second: int
    n_parts: int
    positive: Estimate
    dsc: Estimate


class CaseMasks:
    """The masks of a case during the comparison; each is read once.

    Content that cannot be read or compared is appended to `left_out`; `matches` holds the matched
    lesions of the compared pairs.
    """

    def __init__(self, store: EventStore, case_id: str, left_out: list[LeftOut]) -> None:
        self._store, self._case_id, self._left_out = store, case_id, left_out
        self._masks: dict[str, LabelMap | None] = {}
        self._bad: dict[str, str] = {}
        self._named: set[tuple[str, str]] = set()
        self.matches: list[tuple[str, str, LesionMatch]] = []

    def compare(self, pairs: Iterable[tuple[ReadingView, ReadingView]]) -> Iterator[MaskPair]:
        """Yield the compared pairs; list pairs that cannot be compared in `left_out`."""
        for a, b in pairs:
            masks = [self._load_mask(one) for one in (a, b)]
            bad = [one.reader for one in (a, b) if one.mask in self._bad]
            pair = None if bad else self._measure((a.reader, b.reader), masks, b.at, (a, b))
            if pair is not None:
                yield pair

    def compare_with(
        self, readings: Iterable[ReadingView], path: Path | None
    ) -> Iterator[MaskPair]:
        """Yield the comparison of each reading with a mask of known truth."""
        if path is None:
            self._leave_out(
                TRUTH, "expected its known mask in the folder of the truth, but found none"
            )
            return
        try:
            reference = read_labels(path)
        except MamamiaError as error:
            self._leave_out(TRUTH, str(error))
            return
        for reading in readings:
            mask = self._load_mask(reading)
            known = reference if mask is None else on_common_grid(mask, reference)[1]
            names = (reading.reader, TRUTH)
            is_bad = reading.mask in self._bad
            pair = None if is_bad else self._measure(names, [mask, known], reading.at, (reading,))
            if pair is not None:
                yield pair

    def _load_mask(self, reading: ReadingView) -> LabelMap | None:
        digest = reading.mask
        if digest not in self._masks and digest not in self._bad:
            try:
                self._masks[digest] = load_stored_labels(self._store, digest)
            except MamamiaError as error:
                self._bad[digest] = str(error)
        if digest in self._bad and (reading.reader, digest) not in self._named:
            self._named.add((reading.reader, digest))
            self._leave_out(f"all pairs with {reading.reader}", self._bad[digest])
        return self._masks.get(digest)

    def _measure(
        self,
        names: tuple[str, str],
        masks: Sequence[LabelMap | None],
        at: str,
        readings: Sequence[ReadingView],
    ) -> MaskPair | None:
        anchors = [parse_answers_text(reading.answers).anchors for reading in readings]
        try:
            pair, match = measure_pair(self._case_id, names, masks, at, anchors)
        except MamamiaError as error:
            self._leave_out(" and ".join(names), str(error))
            return None
        self.matches.append((*names, match))
        return pair

    def _leave_out(self, what: str, why: str) -> None:
        self._left_out.append(LeftOut(self._case_id, what, why))


def measure_pair(
    case_id: str,
    names: tuple[str, str],
    masks: Sequence[LabelMap | None],
    at: str = "",
    anchors: Sequence[Sequence[LesionAnchors]] = (),
) -> tuple[MaskPair, LesionMatch]:
    """Compare two masks and their lesions; None is an empty mask.

    `anchors` determine the lesion numbers of the first mask or of both masks.

    Raises
    ------
    GridMismatchError
        If the masks are on different grids.
    """
    first, second = masks
    if first is not None and second is not None:
        require_same_grid(first.grid, second.grid, f"the mask of {names[0]}", f"of {names[1]}")
    drawn = [mask for mask in masks if mask is not None]
    if not drawn:
        return MaskPair(case_id, *names, nan, nan, nan, 0.0, 0.0, "both", at), LesionMatch()
    one, other = (*anchors, (), ())[:2]
    match = match_masks(first, second, (one, other))
    grid = drawn[0].grid
    box = drawn[0].box.union(drawn[-1].box)
    box = box if box.is_empty else box.grown((1, 1, 1), grid.shape)
    a, b = (np.zeros(box.shape, np.bool_) if mask is None else mask.cut(box) > 0 for mask in masks)
    volumes = [float(np.count_nonzero(one)) * grid.voxel_volume_mm3 for one in (a, b)]
    n_empty = sum(volume == 0 for volume in volumes)
    if n_empty:
        dsc, empty = (nan, "both") if n_empty == 2 else (0.0, "one")
        pair = MaskPair(case_id, *names, dsc, nan, nan, volumes[0], volumes[1], empty, at)
        return _count_lesions(pair, match), match
    between = surface.surface_distances(a, b, grid.matrix_mm)
    numbers = (overlap.dice(a, b), surface.hausdorff95(between))
    share = surface.nsd(between, NSD_TOLERANCE_MM)
    pair = MaskPair(case_id, *names, *numbers, share, volumes[0], volumes[1], "", at)
    return _count_lesions(pair, match), match


def _count_lesions(pair: MaskPair, match: LesionMatch) -> MaskPair:
    return replace(
        pair,
        n_lesions_both=len(match.both),
        n_lesions_first=len(match.first_alone),
        n_lesions_second=len(match.second_alone),
        n_lesion_parts=match.n_parts,
        lesion_dsc=mean_of(one.dsc for one in match.both),
    )


def summarise_pairs(
    names: tuple[str, str], pairs: Sequence[MaskPair], sizes: tuple[int, int]
) -> MaskAgreement:
    """Return the means over pairs, one pair per case; `sizes` are resamples and seed."""
    return MaskAgreement(
        *names,
        len(pairs),
        sum(pair.empty == "both" for pair in pairs),
        sum(pair.empty == "one" for pair in pairs),
        estimate_mean([pair.dsc for pair in pairs], *sizes),
        estimate_mean([pair.hd95_mm for pair in pairs], *sizes),
        estimate_mean([pair.nsd for pair in pairs], *sizes),
    )


def summarise_readers(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[MaskAgreement]:
    """Yield the means for each pair of readers, in the order of the study."""
    for names, own_pairs in group_pairs(pairs, order):
        yield summarise_pairs(names, own_pairs, sizes)


def compare_volumes(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[PairedValues]:
    """Yield the agreement of the volumes of each pair of readers, mm3."""
    for names, own_pairs in group_pairs(pairs, order):
        volumes = [(pair.volume_first_mm3, pair.volume_second_mm3) for pair in own_pairs]
        yield compare_values(*names, volumes, *sizes)


def compare_lesions(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[LesionAgreement]:
    """Yield the agreement of each pair of readers on lesions; intervals are over cases."""
    for names, own_pairs in group_pairs(pairs, order):
        counts = np.array(
            [
                (
                    pair.n_lesions_both,
                    pair.n_lesions_first,
                    pair.n_lesions_second,
                    pair.n_lesion_parts,
                )
                for pair in own_pairs
            ],
            dtype=np.float64,
        )
        alone = counts[:, 1] + counts[:, 2]
        sums = [
            pair.lesion_dsc * pair.n_lesions_both if pair.n_lesions_both else 0.0
            for pair in own_pairs
        ]
        n_both, n_first, n_second, n_parts = map(int, counts.sum(axis=0))
        yield LesionAgreement(
            *names,
            n_both,
            n_first,
            n_second,
            n_parts,
            estimate_sums(_share_both, np.stack([counts[:, 0], alone], axis=1), *sizes),
            estimate_sums(_mean_dice, np.stack([counts[:, 0], np.array(sums)], axis=1), *sizes),
        )


def _share_both(sums: Floats) -> Floats:
    return divide_all(2 * sums[..., 0], 2 * sums[..., 0] + sums[..., 1])


def _mean_dice(sums: Floats) -> Floats:
    return divide_all(sums[..., 1], sums[..., 0])


def group_pairs(
    pairs: Iterable[MaskPair], order: Sequence[str]
) -> list[tuple[tuple[str, str], list[MaskPair]]]:
    """Return the pairs grouped by their two names, in the order of the study's readers."""
    groups: dict[tuple[str, str], list[MaskPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.first, pair.second), []).append(pair)
    place = {reader: index for index, reader in enumerate((*order, TRUTH))}
    return sorted(groups.items(), key=lambda group: [place[name] for name in group[0]])


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the defined values, NaN if there is none."""
    defined = [value for value in values if not isnan(value)]
    return sum(defined) / len(defined) if defined else nan
