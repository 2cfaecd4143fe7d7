"""Agreement of a study's readers with each other, with their own repeats, and with known truth.

The masks of a case stay in memory while the case is compared, so that each mask is read once.
Content that cannot be read or compared is listed in the result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isnan, nan
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.answers import LesionAnchors
from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.form import Form
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import Study
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules import agreement, ratings
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState, CaseView, ReadingView
from napari_mamamia.features.review.services.compare import (
    LesionMatch,
    group_lesions,
    load_stored_labels,
    match_masks,
)
from napari_mamamia.features.review.services.look import read_whole, replay_reading
from napari_mamamia.features.review.services.plan_study import hash_honeypots
from napari_mamamia.findings.form_values import parse_answers_text
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.metrics import overlap, surface
from napari_mamamia.services.batch.work import masks_of_cases

NSD_TOLERANCE_MM: Final = 1.0
TRUTH: Final = "truth"
"""Name that stands for the known truth where a second reader's name is expected."""


@dataclass(frozen=True, slots=True)
class MaskPair:
    """Comparison of two masks, symmetric except for volumes; undefined values are NaN.

    `empty` says whether "both" masks, "one" mask or no mask ("") is empty; two empty masks agree
    and are counted separately. Lesions are counted as marked by both, marked by one only, or
    additional parts of a lesion that the other reader drew as one. `lesion_dsc` is the mean Dice of
    lesions marked by both.
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
    """Content that could not be read or compared, with case, reader and reason."""

    case_id: str
    what: str
    why: str


def list_waiting(state: ReviewState) -> list[LeftOut]:
    """Return the readings that are not compared yet because their mask is not in the store."""
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
    """Mean mask agreement over cases, with intervals; pairs of two empty masks are excluded.

    Of `n` pairs, `n_both_empty` consist of two empty masks (agreement, but no Dice) and
    `n_one_empty` of one empty and one non-empty mask (Dice 0, no distance).
    """

    first: str
    second: str
    n: int
    n_both_empty: int
    n_one_empty: int
    dsc: agreement.Estimate
    hd95_mm: agreement.Estimate
    nsd: agreement.Estimate


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
    positive: agreement.Estimate
    dsc: agreement.Estimate


class CaseMasks:
    """Reads the masks of one case, each of them once, and compares them.

    Content that cannot be read or compared is appended to `left_out`; `matches` contains the
    matched lesions of the compared pairs.
    """

    def __init__(self, store: EventStore, case_id: str, left_out: list[LeftOut]) -> None:
        self._store, self._case_id, self._left_out = store, case_id, left_out
        self._masks: dict[str, LabelMap | None] = {}
        self._bad: dict[str, str] = {}
        self._named: set[tuple[str, str]] = set()
        self.matches: list[tuple[str, str, LesionMatch]] = []

    def compare(self, pairs: Iterable[tuple[ReadingView, ReadingView]]) -> Iterator[MaskPair]:
        """Compare pairs of readings; pairs that cannot be compared are added to `left_out`."""
        for a, b in pairs:
            masks = [self._load_mask(one) for one in (a, b)]
            bad = [one.reader for one in (a, b) if one.mask in self._bad]
            pair = None if bad else self._measure((a.reader, b.reader), masks, b.at, (a, b))
            if pair is not None:
                yield pair

    def compare_with(
        self, readings: Iterable[ReadingView], path: Path | None
    ) -> Iterator[MaskPair]:
        """Compare each reading with a mask of known truth."""
        if path is None:
            self._leave_out(
                TRUTH, "expected the known mask of this case in the truth folder, but found none"
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
    """Compare two masks and their lesions; a mask that is None is empty.

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
    """Average over pairs, one pair per case; `sizes` holds the number of resamples and the seed."""
    return MaskAgreement(
        *names,
        len(pairs),
        sum(pair.empty == "both" for pair in pairs),
        sum(pair.empty == "one" for pair in pairs),
        agreement.estimate_mean([pair.dsc for pair in pairs], *sizes),
        agreement.estimate_mean([pair.hd95_mm for pair in pairs], *sizes),
        agreement.estimate_mean([pair.nsd for pair in pairs], *sizes),
    )


def summarise_readers(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[MaskAgreement]:
    """Yield the mean mask agreement of each pair of readers, in study order."""
    for names, own_pairs in group_pairs(pairs, order):
        yield summarise_pairs(names, own_pairs, sizes)


def compare_volumes(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[ratings.PairedValues]:
    """Yield the agreement of each pair of readers on volumes (mm3)."""
    for names, own_pairs in group_pairs(pairs, order):
        volumes = [(pair.volume_first_mm3, pair.volume_second_mm3) for pair in own_pairs]
        yield ratings.compare_values(*names, volumes, *sizes)


def compare_lesions(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[LesionAgreement]:
    """Yield the agreement of each pair of readers on lesions, with intervals over cases."""
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
            agreement.estimate_sums(_share_both, np.stack([counts[:, 0], alone], axis=1), *sizes),
            agreement.estimate_sums(
                _mean_dice, np.stack([counts[:, 0], np.array(sums)], axis=1), *sizes
            ),
        )


def _share_both(sums: agreement.Floats) -> agreement.Floats:
    return agreement.divide_all(2 * sums[..., 0], 2 * sums[..., 0] + sums[..., 1])


def _mean_dice(sums: agreement.Floats) -> agreement.Floats:
    return agreement.divide_all(sums[..., 1], sums[..., 0])


def group_pairs(
    pairs: Iterable[MaskPair], order: Sequence[str]
) -> list[tuple[tuple[str, str], list[MaskPair]]]:
    """Group mask pairs by the names of their two readers, in the order of the study's readers."""
    groups: dict[tuple[str, str], list[MaskPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.first, pair.second), []).append(pair)
    place = {reader: index for index, reader in enumerate((*order, TRUTH))}
    return sorted(groups.items(), key=lambda group: [place[name] for name in group[0]])


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the defined values, or NaN if there are none."""
    defined = [value for value in values if not isnan(value)]
    return sum(defined) / len(defined) if defined else nan


_TIMES: Final = ("first time", "repeat")


@dataclass(frozen=True, slots=True)
class CaseAgreement:
    """Agreement in one case: means over mask pairs with a lesion, and the lowest Dice."""

    case_id: str
    n_readings: int
    n_pairs: int
    n_both_empty: int
    dsc: float
    lowest_dsc: float
    hd95_mm: float
    nsd: float


@dataclass(frozen=True, slots=True)
class FoundObjects:
    """Object counts as in CVAT; each mask is one object.

    An object is valid if the IoU of the two masks is 0.4 or more; otherwise the reference object is
    missing and the reader's object is extra. Two empty masks are not counted. Accuracy is valid /
    (valid + missing + extra), precision valid / (valid + extra), recall valid / (valid + missing).
    They are NaN if the denominator is 0 (CVAT: 0).

    Source: cvat-ai/cvat 00848d0, `quality_control/comparison_report.py`
    (`ComparisonReportAnnotationsSummary`, `iou_threshold`).
    """

    n_valid: int
    n_missing: int
    n_extra: int
    accuracy: float
    precision: float
    recall: float


_IOU: Final = 0.4


@dataclass(frozen=True, slots=True)
class HoneypotCourse:
    """A reader's agreement with known truth: overall, and in the first and second half by time."""

    reader: str
    masks: MaskAgreement
    first_half_dsc: float
    second_half_dsc: float
    objects: FoundObjects


@dataclass(frozen=True, slots=True)
class StudyAgreement:
    """Agreement of a study's readers; `left_out` lists content that was not compared.

    `masks` holds means over cases of each case's mean over pairs. `readers`, `volumes` and
    `lesions` have one entry per pair of readers, `questions` one per question. `repeats` compares
    each reader with the reader's own hidden repeats.
    """

    study: str
    study_id: str
    origin: str
    at: str
    software: str
    mode: str
    n_cases: int
    n_compared: int
    masks: MaskAgreement
    readers: tuple[MaskAgreement, ...]
    volumes: tuple[ratings.PairedValues, ...]
    lesions: tuple[LesionAgreement, ...]
    categories: tuple[ratings.CategoryAgreement, ...]
    numbers: tuple[ratings.NumberAgreement, ...]
    n_lesions_unmatched: int
    repeats: tuple[MaskAgreement, ...]
    repeat_volumes: tuple[ratings.PairedValues, ...]
    repeat_answers: tuple[ratings.CategoryAgreement, ...]
    repeat_numbers: tuple[ratings.NumberAgreement, ...]
    honeypots: tuple[HoneypotCourse, ...]
    notes: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    cases: tuple[CaseAgreement, ...]
    pairs: tuple[MaskPair, ...]
    repeat_pairs: tuple[MaskPair, ...]
    honeypot_pairs: tuple[MaskPair, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """The lead's list of honeypots, and a folder with their known masks (``ID.nii.gz``)."""

    case_ids: tuple[str, ...]
    masks: Path


def list_orders(form: Form | None, questions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return each ordered question's terms, in the order of the form.

    Raises
    ------
    CaseError
        If the study's form has no such question with terms.
    """
    orders = {}
    for name in questions:
        field = None if form is None else form.field(name)
        if field is None or not field.is_choice:
            raise CaseError(
                f"expected a question with terms in the study's form, but found {name!r}: check "
                "the spelling, or leave out the question"
            )
        orders[name] = tuple(term.id for term in field.terms)
    return orders


def measure_agreement(
    store: EventStore,
    truth: Truth | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    n_resamples: int = agreement.N_RESAMPLES,
    seed: int = agreement.SEED,
) -> StudyAgreement:
    """Measure the agreement of a study's readers in the current round.

    Parameters
    ----------
    store
        The study.
    truth
        Honeypots with known truth; None leaves them out.
    orders
        Sorted categories by question; other questions have an order only if all their categories
        are whole numbers.
    n_resamples, seed
        Number of bootstrap resamples for the intervals, and their seed.

    Raises
    ------
    CaseError
        If the list of honeypots differs from the list at the start of the study.
    FormatError
        If the events cannot be read to the end.
    """
    state = replay_reading(store, read_whole(store))
    study = store.study
    if truth is not None:
        _require_list(study, truth)
    left_out = list_waiting(state)
    sizes = (n_resamples, seed)
    matched = LesionNames()
    pairs, repeat_pairs, honeypot_pairs = _compare_all(store, state, truth, left_out, matched)
    report_progress(len(state.cases), len(state.cases), "Resampling cases")
    order = [reader.reader_id for reader in study.readers]
    categories, numbers, notes, n_unmatched = _compare_answers(
        state, matched, order, orders or {}, sizes
    )
    return StudyAgreement(
        study.plan.name,
        study.study_id,
        store.origin,
        now_utc(),
        software_version(),
        str(study.plan.mode),
        len(study.cases),
        len({pair.case_id for pair in pairs}),
        _summarise_cases(pairs, sizes),
        tuple(summarise_readers(pairs, order, sizes)),
        tuple(compare_volumes(pairs, order, sizes)),
        tuple(compare_lesions(pairs, order, sizes)),
        categories,
        numbers,
        n_unmatched,
        tuple(summarise_readers(repeat_pairs, order, sizes)),
        tuple(compare_volumes(repeat_pairs, order, sizes)),
        *_compare_repeated_answers(state, matched, orders or {}, sizes),
        tuple(_follow_honeypots(honeypot_pairs, order, sizes)),
        (*notes, *_note_design(state, pairs, truth)),
        tuple(left_out),
        tuple(_summarise_each(state, pairs)),
        tuple(pairs),
        tuple(repeat_pairs),
        tuple(honeypot_pairs),
    )


# ------------------------------------------------------------------------ masks


@dataclass(slots=True)
class LesionNames:
    """Lesion numbers that are common to all readings of a case, by case and by reading.

    Both fields map a reading's own lesion numbers to the common numbers. In `of_readers`, a
    """

    of_readers: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    of_repeats: dict[tuple[str, str], dict[str, dict[str, str]]] = field(default_factory=dict)


def _compare_all(
    store: EventStore,
    state: ReviewState,
    truth: Truth | None,
    left_out: list[LeftOut],
    matched: LesionNames,
) -> tuple[list[MaskPair], list[MaskPair], list[MaskPair]]:
    known_masks = {} if truth is None else masks_of_cases(truth.masks)
    of_truth = (
        set()
        if truth is None
        else {case_key(case_identifier) for case_identifier in truth.case_ids}
    )
    pairs: list[MaskPair] = []
    repeats: list[MaskPair] = []
    honeypots: list[MaskPair] = []
    for index, view in enumerate(state.cases):
        case_id = state.study.case(view.key).case_id
        report_progress(index, len(state.cases), f"Comparing masks: {case_id}")
        look = CaseMasks(store, case_id, left_out)
        pairs += look.compare(combinations(_list_first(view, state.study), 2))
        matched.of_readers[view.key] = group_lesions(look.matches)
        look.matches.clear()
        repeats += look.compare(list_repeats(view))
        for reader, _, match in look.matches:
            matched.of_repeats[view.key, reader] = group_lesions([(*_TIMES, match)])
        if case_key(case_id) in of_truth:
            readings = [one for one in (*view.earlier, *view.readings) if one.hash]
            first = [reading for reading in readings if (reading.round, reading.occasion) == (1, 0)]
            honeypots += look.compare_with(first, known_masks.get(case_key(case_id)))
    return pairs, repeats, honeypots


def _list_first(view: CaseView, study: Study) -> list[ReadingView]:
    """Return a case's valid readings without repeats, in the order of the study's readers."""
    order = {reader.reader_id: index for index, reader in enumerate(study.readers)}
    readings = [
        reading
        for reading in view.readings
        if reading.occasion == 0 and reading.state is CaseState.READ
    ]
    return sorted(readings, key=lambda reading: order[reading.reader])


def list_repeats(view: CaseView) -> list[tuple[ReadingView, ReadingView]]:
    """Return the pair (first reading, hidden repeat) of each reader who finished both."""
    readings = {
        (one.reader, one.round, one.occasion): one
        for one in (*view.earlier, *view.readings)
        if one.hash
    }
    return [
        (readings[(reader, turn, 0)], one)
        for (reader, turn, occasion), one in sorted(readings.items())
        if occasion == 1 and (reader, turn, 0) in readings
    ]


def _summarise_cases(pairs: Iterable[MaskPair], sizes: tuple[int, int]) -> MaskAgreement:
    groups: dict[str, list[MaskPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.case_id, []).append(pair)
    every = [one for group in groups.values() for one in group]
    means = [
        [mean_of(getattr(one, name) for one in group) for group in groups.values()]
        for name in ("dsc", "hd95_mm", "nsd")
    ]
    return MaskAgreement(
        "all",
        "all",
        len(every),
        sum(one.empty == "both" for one in every),
        sum(one.empty == "one" for one in every),
        *(agreement.estimate_mean(values, *sizes) for values in means),
    )


def _summarise_each(state: ReviewState, pairs: Iterable[MaskPair]) -> Iterator[CaseAgreement]:
    groups: dict[str, list[MaskPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.case_id, []).append(pair)
    for view in state.cases:
        case_id = state.study.case(view.key).case_id
        group = groups.get(case_id, [])
        overlaps = [one.dsc for one in group if not isnan(one.dsc)]
        yield CaseAgreement(
            case_id,
            len(_list_first(view, state.study)),
            len(group),
            sum(one.empty == "both" for one in group),
            mean_of(one.dsc for one in group),
            min(overlaps, default=nan),
            mean_of(one.hd95_mm for one in group),
            mean_of(one.nsd for one in group),
        )


# --------------------------------------------------------------------- the truth


def _require_list(study: Study, truth: Truth) -> None:
    if hash_honeypots(truth.case_ids) != study.honeypots:
        raise CaseError(
            "expected the list of honeypots that was used to begin the study "
            f"({count_of(study.honeypots.count, 'case')}), but found a different list of "
            f"{len(truth.case_ids)}: choose the file that was passed to `mamamia review init`"
        )


def _follow_honeypots(
    pairs: Iterable[MaskPair], order: Sequence[str], sizes: tuple[int, int]
) -> Iterator[HoneypotCourse]:
    for names, own_pairs in group_pairs(pairs, order):
        by_time = sorted(own_pairs, key=lambda pair: pair.at)
        half = (len(by_time) + 1) // 2
        yield HoneypotCourse(
            names[0],
            summarise_pairs(names, by_time, sizes),
            mean_of(one.dsc for one in by_time[:half]),
            mean_of(one.dsc for one in by_time[half:]),
            _count_objects(own_pairs),
        )


def _count_objects(pairs: Sequence[MaskPair]) -> FoundObjects:
    """Count a reader's objects (first mask) against the truth (second mask), as CVAT does."""
    # IoU = Dice / (2 - Dice); NaN for two empty masks, so that every comparison is False
    is_valid = [pair.dsc / (2 - pair.dsc) >= _IOU for pair in pairs]
    n_valid = sum(is_valid)
    others = [pair for pair, is_found in zip(pairs, is_valid, strict=True) if not is_found]
    n_extra = sum(other.volume_first_mm3 > 0 for other in others)
    n_missing = sum(other.volume_second_mm3 > 0 for other in others)
    shares = (
        n_valid / n if n else nan
        for n in (n_valid + n_missing + n_extra, n_valid + n_extra, n_valid + n_missing)
    )
    return FoundObjects(n_valid, n_missing, n_extra, *shares)


# ------------------------------------------------------------------------ answers


def _compare_answers(
    state: ReviewState,
    matched: LesionNames,
    readers: Sequence[str],
    orders: Mapping[str, Sequence[str]],
    sizes: tuple[int, int],
) -> tuple[
    tuple[ratings.CategoryAgreement, ...], tuple[ratings.NumberAgreement, ...], list[str], int
]:
    table = ratings.collect_questions(
        ratings.ReaderAnswers(
            index,
            reading.reader,
            reading.answers,
            _name_lesions(reading, reading.reader, names, readings),
        )
        for index, view in enumerate(state.cases)
        for names in [matched.of_readers.get(view.key, {})]
        for readings in [_list_first(view, state.study)]
        for reading in readings
    )
    notes = [f"{name} is not compared: {why}" for name, why in table.notes]
    return *ratings.compare_table(table, readers, orders, sizes), notes, table.n_unmatched


def _compare_repeated_answers(
    state: ReviewState,
    matched: LesionNames,
    orders: Mapping[str, Sequence[str]],
    sizes: tuple[int, int],
) -> tuple[tuple[ratings.CategoryAgreement, ...], tuple[ratings.NumberAgreement, ...]]:
    both = [
        (index, view.key, pair)
        for index, view in enumerate(state.cases)
        for pair in list_repeats(view)
    ]
    table = ratings.collect_questions(
        ratings.ReaderAnswers(index, time, one.answers, _name_lesions(one, time, names, pair))
        for index, (_, key, pair) in enumerate(both)
        for names in [matched.of_repeats.get((key, pair[0].reader), {})]
        for time, one in zip(_TIMES, pair, strict=True)
    )
    return ratings.compare_table(table, _TIMES, orders, sizes, [case for case, _, _ in both])


def _name_lesions(
    reading: ReadingView,
    who: str,
    names: Mapping[str, Mapping[str, str]],
    readings: Sequence[ReadingView],
) -> Mapping[str, str] | None:
    if len(readings) < 2:  # no second reading to compare with
        return {name: name for name in parse_answers_text(reading.answers).lesions}
    return names.get(who, {}) if any(names.values()) or reading.mask else None


def _note_design(
    state: ReviewState, pairs: Sequence[MaskPair], truth: Truth | None
) -> Iterator[str]:
    study = state.study
    if not pairs:
        yield "no case was read completely by two people, so there is nothing to compare"
    if study.plan.mode.value == "second-look":
        yield "the second reader saw the first mask, so the readings are not independent"
    if study.honeypots.count and truth is None:
        yield (
            f"{study.honeypots.count} honeypots are not evaluated: specify their list and the "
            "folder of their known masks"
        )
    if not study.plan.repeat_share:
        yield "the study has no hidden repeats, so readers are not compared with themselves"
