"""The report of a study: flow, agreement, disputes, time, signatures, chains.

Readers are shown by code unless the lead requests names. Every figure has a table.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.form import Form
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.quality import Queue
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.agreement import N_RESAMPLES, SEED, Estimate
from napari_mamamia.features.review.rules.quality import Capture, follow_capture
from napari_mamamia.features.review.rules.ratings import PairedValues
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.agreement.agree import (
    CaseAgreement,
    LesionAgreement,
    MaskAgreement,
    StudyAgreement,
    measure_agreement,
)
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.look import (
    load_study_form,
    load_study_queue,
    read_whole,
    replay_reading,
)
from napari_mamamia.features.review.services.quality_queue import describe_capture
from napari_mamamia.features.review.services.report.report_parts import (
    FEWEST,
    PAIRS_SHOWN,
    call_pair,
    format_time,
    list_disputes,
    list_words,
    make_chains,
    make_disputes,
    make_flow,
    make_signatures,
    make_sites,
    make_times,
    rank_pair,
    tabulate_numbers,
    tabulate_questions,
)
from napari_mamamia.features.review.services.report.study_figures import (
    MOST_PICTURES,
    ReaderLabels,
    capture_curve,
    dice_of_cases,
    make_gallery,
    make_labels,
)
from napari_mamamia.findings.form_rules import why_other_form
from napari_mamamia.findings.form_values import parse_answers_text
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.page import Page, PageSection, render_page
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Column,
    ReportTable,
    Row,
    number,
    range_text,
)

REPORT: Final = "report.html"
ERROR_QUESTION: Final = "error"
"""The yes/no question of the form whose answers the capture curve counts."""


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """Options of a report.

    Parameters
    ----------
    are_named
        Whether readers are shown by name instead of code.
    by_reader
        Whether time is shown by reader.
    images
        The data set with the images; None for the location in the study file.
    most_pictures
        Maximum number of images of disagreements, the worst first.
    n_resamples, seed
        Number of resamples for the intervals, and their seed; equal values in `measure_agreement`
        give the same numbers.
    """

    are_named: bool = False
    by_reader: bool = False
    images: Path | None = None
    most_pictures: int = MOST_PICTURES
    n_resamples: int = N_RESAMPLES
    seed: int = SEED


DEFAULT: Final = ReportChoice()


@dataclass(frozen=True, slots=True, eq=False)
class StudyPage:
    """The report before rendering; `problems` lists invalid or unreadable content."""

    page: Page
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyReport:
    """The path of the report, and its invalid or unreadable content."""

    path: Path
    problems: tuple[str, ...] = ()


def write_study_report(
    store: FolderStore, out: Path, choice: ReportChoice = DEFAULT, *, overwrite: bool = False
) -> StudyReport:
    """Write ``report.html`` of a study.

    Raises
    ------
    FormatError
        If the events cannot be read to the end.
    SaveConflictError
        If the file exists and `overwrite` is off.
    """
    report = make_study_page(store, choice)
    text = render_page(report.page)
    Share(out).run(lambda folder: write_text_atomically(folder / REPORT, text, overwrite=overwrite))
    return StudyReport(out / REPORT, report.problems)


def make_study_page(store: FolderStore, choice: ReportChoice = DEFAULT) -> StudyPage:
    """Return the report of a study."""
    reading = read_whole(store)
    state = replay_reading(store, reading)
    labels = make_labels(state, are_named=choice.are_named)
    result = measure_agreement(store, n_resamples=choice.n_resamples, seed=choice.seed)
    images = choice.images or Path(store.study.data_set)
    disputed = [state.study.case(dispute.key).case_id for dispute in list_disputes(state)]
    about = (disputed, images, choice.most_pictures, labels.rank)
    gallery = make_gallery(store, state, result.pairs, *about)
    queue = store.read_frozen(load_study_queue)
    form = store.read_frozen(load_study_form)
    check = verify_study(store)
    plan = store.study.plan
    facts = (
        f"Study {store.study.study_id}, begun {format_time(store.study.created)} UTC, "
        f"mode {plan.mode.value}, {len(store.study.cases)} cases, "
        f"{len(store.study.readers)} people.",
        plan.blinding.text or "Not blind.",
        "Readers are shown by name." if choice.are_named else "Readers are shown by codes.",
    )
    sections = [
        make_flow(state),
        *make_sites(state, result.pairs),
        _make_agreement(
            result, labels, plan.triggers.dice_below, form, count_other_forms(state, form)
        ),
        make_disputes(state, labels, gallery, form),
        make_times(state, labels, by_reader=choice.by_reader),
        *(() if queue is None else _make_capture(state, queue)),
        make_signatures(state, labels),
        make_chains(store.origin, reading.chains, labels),
    ]
    problems = [f"{problem.kind}: {problem.where}: {problem.text}" for problem in check.problems]
    problems += [f"{one.case_id}: {one.what}: {one.why}" for one in result.left_out]
    problems += gallery.failed
    warning = f"{count_of(len(check.problems), 'problem')} (`mamamia review verify`): see Failures."
    page = Page(
        f"Review study: {plan.name}",
        facts,
        tuple(sections),
        (warning,) if check.problems else (),
        list_words(problems, labels),
        "Research use.",
    )
    return StudyPage(page, page.failures)


# --------------------------------------------------------------------- agreement

_WORST_SHOWN: Final = 30
_ESTIMATES: Final = (Column("n"), Column("Value"), Column("95 % interval"))


def _make_agreement(
    result: StudyAgreement,
    labels: ReaderLabels,
    trigger: float | None,
    form: Form | None,
    notes: Sequence[str],
) -> PageSection:
    defined = [case for case in result.cases if not math.isnan(case.lowest_dsc)]
    figure = ReportFigure(
        "dice",
        "Lowest Dice of two readings of each case; below the dashed line, readings disagree.",
        Drawing(dice_of_cases, ([one.lowest_dsc for one in defined], trigger), has_png=False),
    )
    tables = [_tell_masks(result)]
    if len(result.readers) > 1 or result.volumes:
        tables.append(_tell_pairs(result, labels))
    if any(lesion.n_both + lesion.n_first + lesion.n_second for lesion in result.lesions):
        tables.append(_tell_lesions(result.lesions, labels))
    if result.categories:
        tables.append(tabulate_questions(result.categories, form))
    if any(number.pairs for number in result.numbers):
        tables.append(tabulate_numbers(result.numbers, labels, form))
    if defined:
        tables.append(_tell_cases(defined))
    return PageSection(
        "Agreement",
        tuple(tables),
        (figure,) if defined else (),
        notes=list_words((*result.notes, *notes), labels),
        says=(f"{result.n_compared} of {result.n_cases} cases were read by two or more.",),
    )


def count_other_forms(state: ReviewState, form: Form | None) -> tuple[str, ...]:
    """Return a note with the number of readings answered on a different form, or "" for none."""
    if form is None:
        return ()
    counts = Counter(
        why_other_form(form, parse_answers_text(reading.answers))
        for view in state.cases
        for reading in view.readings
        if reading.hash
    )
    return tuple(f"{count_of(n, 'reading')} {why}" for why, n in sorted(counts.items()) if why)


def _tell_masks(result: StudyAgreement) -> ReportTable:
    masks = result.masks
    rows = (
        _row_of("Dice", masks.dsc, 3),
        _row_of("HD95 (mm)", masks.hd95_mm, 1),
        _row_of("NSD at 1 mm", masks.nsd, 3),
    )
    notes = (
        (
            f"{masks.n} pairs of masks; in {masks.n_both_empty}, both masks are empty (they "
            f"agree, but are not included in means), and in {masks.n_one_empty}, one mask is "
            "empty (Dice 0). Intervals: percentiles over resampled cases."
        ),
    )
    return ReportTable(
        "Masks, mean over cases", (Column("Number", is_number=False), *_ESTIMATES), rows, notes
    )


def _row_of(name: str, estimate: Estimate, decimals: int) -> Row:
    cells = (number(estimate.n, 0), number(estimate.value, decimals))
    return Row((name, *cells, range_text(estimate.low, estimate.high, decimals)))


def _tell_pairs(result: StudyAgreement, labels: ReaderLabels) -> ReportTable:
    volumes = {(volume.first, volume.second): volume for volume in result.volumes}
    ordered = sorted(result.readers, key=lambda reader: rank_pair(reader, labels))
    rows = tuple(
        _row_of_pair(one, volumes.get((one.first, one.second)), labels)
        for one in ordered[:PAIRS_SHOWN]
    )
    columns = (
        Column("Readers", is_number=False),
        Column("Pairs"),
        Column("Dice"),
        Column("HD95 (mm)"),
        Column("Volume ratio"),
        Column("its limits"),
        Column("ICC(A,1) of volume"),
    )
    n_more = len(result.readers) - PAIRS_SHOWN
    more = (f"{count_of(n_more, 'more pair')}: see `mamamia review agreement`.",) * (n_more > 0)
    notes = (
        *more,
        (
            "Ratio first over second, geometric mean; limits contain 95 % of the ratios (Bland "
            "and Altman). ICC: two-way random, absolute agreement, one reader. With fewer than "
            f"{FEWEST} pairs, neither is shown here; `mamamia review agreement` lists all pairs."
        ),
    )
    return ReportTable("Pair by pair", columns, rows, notes)


def _row_of_pair(
    agreement: MaskAgreement, volume: PairedValues | None, labels: ReaderLabels
) -> Row:
    names, is_turned = call_pair(agreement, labels)
    cells = (
        number(agreement.n, 0),
        number(agreement.dsc.value),
        number(agreement.hd95_mm.value, 1),
    )
    if volume is None:
        return Row((names, *cells, UNKNOWN, UNKNOWN, UNKNOWN))
    ratio, low, high = volume.ratio.ratio, volume.ratio.low, volume.ratio.high
    if is_turned:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    spread = (UNKNOWN, UNKNOWN)
    if volume.ratio.n >= FEWEST:
        spread = (range_text(low, high, 2), number(volume.icc.value))
    return Row((names, *cells, number(ratio, 2), *spread))


def _tell_lesions(lesions: Sequence[LesionAgreement], labels: ReaderLabels) -> ReportTable:
    ordered = sorted(lesions, key=lambda lesion: rank_pair(lesion, labels))
    rows = tuple(_row_of_lesions(one, labels) for one in ordered[:PAIRS_SHOWN])
    columns = (
        Column("Readers", is_number=False),
        Column("Both"),
        Column("Only the first"),
        Column("Only the second"),
        Column("Split or merged"),
        Column("Positive agreement"),
        Column("95 % interval"),
        Column("Dice of both"),
    )
    n_more = len(ordered) - PAIRS_SHOWN
    more = (f"{count_of(n_more, 'more pair')}: see `mamamia review agreement`.",) * (n_more > 0)
    notes = (
        *more,
        "26-connected components, matched by overlap (IoU 0.1 or more), then a shared voxel, "
        "then centres less than 10 mm apart. Positive agreement: 2 both / (2 both + only).",
    )
    return ReportTable("Lesions, pair by pair", columns, rows, notes)


def _row_of_lesions(agreement: LesionAgreement, labels: ReaderLabels) -> Row:
    names, is_turned = call_pair(agreement, labels)
    alone = (
        (agreement.n_second, agreement.n_first)
        if is_turned
        else (agreement.n_first, agreement.n_second)
    )
    counts = (number(n, 0) for n in (agreement.n_both, *alone, agreement.n_parts))
    spread = range_text(agreement.positive.low, agreement.positive.high)
    return Row(
        (names, *counts, number(agreement.positive.value), spread, number(agreement.dsc.value))
    )


def _tell_cases(cases: Sequence[CaseAgreement]) -> ReportTable:
    ordered = sorted(cases, key=lambda case: (case.lowest_dsc, case.case_id))
    rows = tuple(
        Row(
            (
                one.case_id,
                number(one.n_readings, 0),
                number(one.lowest_dsc),
                number(one.dsc),
                number(one.hd95_mm, 1),
            )
        )
        for one in ordered[:_WORST_SHOWN]
    )
    columns = (
        Column("Case", is_number=False),
        Column("Readings"),
        Column("Lowest Dice"),
        Column("Mean Dice"),
        Column("Mean HD95 (mm)"),
    )
    n_more = len(ordered) - _WORST_SHOWN
    notes = (f"{n_more} more: see `mamamia review agreement`.",) * (n_more > 0)
    return ReportTable("Agreement of each case, lowest first", columns, rows, notes)


# ----------------------------------------------------------------------- capture


def _make_capture(state: ReviewState, queue: Queue) -> tuple[PageSection, ...]:
    marks = list_marks(state, queue)
    if not marks:
        return ()
    capture = follow_capture(queue, marks)
    rate, n = capture.rate, capture.n_cases
    totals = (rate.rate * n, rate.low * n, rate.high * n)
    points = capture.points
    figure = ReportFigure(
        "capture",
        "Errors found against the proportion of cases read, in the order of reading; dashed: the "
        "estimated errors in all cases, with the 95 % interval.",
        Drawing(
            capture_curve,
            ([point.n_read for point in points], [point.n_errors for point in points], n, totals),
            has_png=False,
        ),
    )
    section = PageSection(
        "Quality control", (_tabulate_capture(capture),), (figure,), says=describe_capture(capture)
    )
    return (section,)


def list_marks(state: ReviewState, queue: Queue) -> dict[str, bool]:
    """Return whether each case that was read had an error, in the order of reading.

    A case has an error if any of its readings answers yes to the question `error`.
    """
    queued = {one.case_id for one in queue.places}
    marks: list[tuple[str, str, bool]] = []
    for view in state.cases:
        case_id = state.study.case(view.key).case_id
        readings = [
            reading
            for reading in view.readings
            if reading.state is CaseState.READ and reading.occasion == 0
        ]
        answers = [parse_answers_text(reading.answers).find(ERROR_QUESTION) for reading in readings]
        chosen = [answer.values for answer in answers if answer is not None and answer.values]
        if chosen and case_id in queued:
            first = min(reading.at for reading in readings)
            marks.append((first, case_id, any("yes" in values for values in chosen)))
    return {case_id: is_error for _, case_id, is_error in sorted(marks)}


def _tabulate_capture(capture: Capture) -> ReportTable:
    n = capture.n_read
    places = sorted({round(n * tenth / 10) for tenth in range(1, 11)} - {0})
    rows = tuple(
        Row(
            (
                number(index, 0),
                f"{100 * index / capture.n_cases:.0f} %",
                number(capture.points[index].n_errors, 0),
            )
        )
        for index in places
    )
    columns = (Column("Cases read"), Column("Share of all"), Column("Errors found"))
    return ReportTable("Capture curve", columns, rows)
