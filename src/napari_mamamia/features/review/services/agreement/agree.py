"""Agreement of a study's readers with each other, with their hidden repeats, and with truth.

Masks are read case by case and not kept in memory. Content that cannot be read or compared is
listed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan, nan
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.form import Form
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import Study
from napari_mamamia.features.review.io.store import EventStore
from napari_mamamia.features.review.rules.agreement import N_RESAMPLES, SEED, estimate_mean
from napari_mamamia.features.review.rules.questions import ReaderAnswers, collect_questions
from napari_mamamia.features.review.rules.ratings import (
    CategoryAgreement,
    NumberAgreement,
    PairedValues,
    compare_table,
)
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.rules.views import CaseView, ReadingView
from napari_mamamia.features.review.services.agreement.mask_pairs import (
    CaseMasks,
    LeftOut,
    LesionAgreement,
    MaskAgreement,
    MaskPair,
    compare_lesions,
    compare_volumes,
    group_pairs,
    list_waiting,
    mean_of,
    summarise_pairs,
    summarise_readers,
)
from napari_mamamia.features.review.services.lesion_match import group_lesions
from napari_mamamia.features.review.services.look import read_whole, replay_reading
from napari_mamamia.features.review.services.make_study import hash_honeypots
from napari_mamamia.findings.form_values import parse_answers_text
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.batch.masked_inputs import masks_of_cases

_TIMES: Final = ("first time", "repeat")


@dataclass(frozen=True, slots=True)
class CaseAgreement:
    """Agreement in one case: means over pairs with at least one lesion, and the lowest Dice."""

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
    `lesions` are by pair of readers, `questions` by name. `repeats` compares each reader with the
    reader's own hidden repeats.
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
    volumes: tuple[PairedValues, ...]
    lesions: tuple[LesionAgreement, ...]
    categories: tuple[CategoryAgreement, ...]
    numbers: tuple[NumberAgreement, ...]
    n_lesions_unmatched: int
    repeats: tuple[MaskAgreement, ...]
    repeat_volumes: tuple[PairedValues, ...]
    repeat_answers: tuple[CategoryAgreement, ...]
    repeat_numbers: tuple[NumberAgreement, ...]
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
    """Return the terms, in the form's order, of questions declared as ordered.

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
                f"expected a question of the study's form that has terms, but found {name!r}: "
                "check the spelling, or leave it out"
            )
        orders[name] = tuple(term.id for term in field.terms)
    return orders


def measure_agreement(
    store: EventStore,
    truth: Truth | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> StudyAgreement:
    """Return the agreement of a study's readers in the current round.

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
    """Common lesion numbers of all readings of a case, by case, reading and the reader's number.

    Readings are keyed by reader; the two readings of a hidden repeat (case, reader) by occasion.
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
    """Compare pairs of readers, repeats and truth, with the masks of one case in memory."""
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
    """Return the counted first readings, in the order of the study's readers."""
    order = {reader.reader_id: index for index, reader in enumerate(study.readers)}
    readings = [
        reading
        for reading in view.readings
        if reading.occasion == 0 and reading.state is CaseState.READ
    ]
    return sorted(readings, key=lambda reading: order[reading.reader])


def list_repeats(view: CaseView) -> list[tuple[ReadingView, ReadingView]]:
    """Return (first reading, hidden repeat) of each reader who finished both in the same round."""
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
    """Return the means over cases of the mean over a case's pairs."""
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
        *(estimate_mean(values, *sizes) for values in means),
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
            "expected the list of honeypots that the study was begun with "
            f"({count_of(study.honeypots.count, 'case')}), but found another list of "
            f"{len(truth.case_ids)}: name the file that `mamamia review init` was given"
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
    """Count a reader's objects (first) against the truth (second) as valid, missing and extra."""
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
) -> tuple[tuple[CategoryAgreement, ...], tuple[NumberAgreement, ...], list[str], int]:
    table = collect_questions(
        ReaderAnswers(
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
    return *compare_table(table, readers, orders, sizes), notes, table.n_unmatched


def _compare_repeated_answers(
    state: ReviewState,
    matched: LesionNames,
    orders: Mapping[str, Sequence[str]],
    sizes: tuple[int, int],
) -> tuple[tuple[CategoryAgreement, ...], tuple[NumberAgreement, ...]]:
    """Return the agreement of all readers' answers with their own hidden repeats."""
    both = [
        (index, view.key, pair)
        for index, view in enumerate(state.cases)
        for pair in list_repeats(view)
    ]
    table = collect_questions(
        ReaderAnswers(index, time, one.answers, _name_lesions(one, time, names, pair))
        for index, (_, key, pair) in enumerate(both)
        for names in [matched.of_repeats.get((key, pair[0].reader), {})]
        for time, one in zip(_TIMES, pair, strict=True)
    )
    return compare_table(table, _TIMES, orders, sizes, [case for case, _, _ in both])


def _name_lesions(
    reading: ReadingView,
    who: str,
    names: Mapping[str, Mapping[str, str]],
    readings: Sequence[ReadingView],
) -> Mapping[str, str] | None:
    """Return the common number of each lesion; None if no reading has a mask."""
    if len(readings) < 2:  # no second reading to compare with
        return {name: name for name in parse_answers_text(reading.answers).lesions}
    return names.get(who, {}) if any(names.values()) or reading.mask else None


def _note_design(
    state: ReviewState, pairs: Sequence[MaskPair], truth: Truth | None
) -> Iterator[str]:
    """Yield sentences on the limitations of these numbers."""
    study = state.study
    if not pairs:
        yield "no case was fully read by two people: there is nothing to compare"
    if study.plan.mode.value == "second-look":
        yield "the second reader saw the first mask: the readings are not independent"
    if study.honeypots.count and truth is None:
        yield (
            f"{study.honeypots.count} honeypots are not evaluated: give their list and the "
            "folder of their known masks"
        )
    if not study.plan.repeat_share:
        yield "the study has no hidden repeats: readers are not compared with themselves"
