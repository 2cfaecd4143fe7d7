"""A study's report: flow of cases, agreement, disputes, working time, signatures, hashes.

Readers are shown by code unless the lead requests names. Every figure has a matching table.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from napari_mamamia.core.form import Form
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.quality import Queue
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules import form_words
from napari_mamamia.features.review.rules.agreement import N_RESAMPLES, SEED, Estimate
from napari_mamamia.features.review.rules.quality import Capture, follow_capture
from napari_mamamia.features.review.rules.ratings import (
    CategoryAgreement,
    NumberAgreement,
    PairedValues,
)
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.rules.states import Act, CaseState, CaseView, ReadingView
from napari_mamamia.features.review.services.agreement import agree
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.look import (
    load_study_form,
    load_study_queue,
    rank_dispute,
    read_whole,
    replay_reading,
)
from napari_mamamia.features.review.services.quality_queue import describe_capture
from napari_mamamia.features.review.services.report.study_figures import (
    MOST_PICTURES,
    FlowBox,
    Gallery,
    ReaderLabels,
    capture_curve,
    dice_of_cases,
    flow_diagram,
    make_gallery,
    make_labels,
    time_bars,
)
from napari_mamamia.findings.form_rules import why_other_form
from napari_mamamia.findings.form_values import parse_answers_text
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.workspace.event_store import Event
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.page import Page, PageSection, render_page
from napari_mamamia.scoring.report.report import case_figure
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Column,
    ReportTable,
    Row,
    number,
    range_text,
)

ROWS_SHOWN: Final = 200
_CASE: Final = Column("Case", False, is_whole=True)
_S: Final = CaseState
_EDGES: Final = (1, 2, 5, 10, 20, 30, 60)
_CLASSES: Final = ("< 1", "1 to 2", "2 to 5", "5 to 10", "10 to 20", "20 to 30", "30 to 60", "> 60")
_GROUPS: Final = (
    (
        "not read to the end",
        (_S.NEW, _S.CLAIMED, _S.IN_WORK, _S.SECOND_READING, _S.REOPENED),
    ),
    ("read, to be decided", (_S.READ, _S.DISAGREES, _S.IN_ADJUDICATION)),
    ("decided", (_S.ACCEPTED, _S.SIGNED, _S.REJECTED)),
)


def make_flow(state: ReviewState) -> PageSection:
    """Make the section on the states of the cases, with a flow diagram and a table."""
    counts = state.counts
    boxes = [
        FlowBox(
            title,
            sum(counts[state] for state in states),
            tuple(f"{state.value}: {counts[state]}" for state in states if counts[state]),
        )
        for title, states in _GROUPS
    ]
    whole = FlowBox("cases in the study", len(state.cases))
    rows = [
        Row((title, one.value, number(counts[one], 0), _say_share(counts[one], len(state.cases))))
        for title, states in _GROUPS
        for one in states
    ]
    columns = (Column("Group", False), Column("State", False), Column("Cases"), Column("Share"))
    table = ReportTable("Cases by state", columns, tuple(rows))
    figure = ReportFigure(
        "flow",
        "Numbers of cases by state; every case is in one box.",
        Drawing(flow_diagram, (whole, boxes), has_png=False),
    )
    return PageSection("Cases", (table, _tabulate_decisions(state)), (figure,))


def _tabulate_decisions(state: ReviewState) -> ReportTable:
    decided = [
        case for case in state.cases if case.decision and case.decision.act is not Act.REOPEN
    ]
    kinds = (
        ("readings agreed", [one for one in decided if one.comparison and one.comparison.agrees]),
        (
            "readings disagreed",
            [one for one in decided if one.comparison and not one.comparison.agrees],
        ),
        ("not compared", [one for one in decided if one.comparison is None]),
    )
    rows = []
    for title, views in kinds:
        acts = [view.decision.act for view in views if view.decision]
        cells = (len(views), *(acts.count(act) for act in (Act.ACCEPT, Act.DECIDE, Act.REJECT)))
        rows.append(Row((title, *(number(cell, 0) for cell in cells))))
    columns = (
        Column("Before the decision", False),
        *map(Column, ("Cases", "a reading accepted", "adjudicated", "rejected")),
    )
    return ReportTable("How cases were decided", columns, tuple(rows))


def list_disputes(state: ReviewState) -> tuple[CaseView, ...]:
    """Return the cases with a disagreement or conflict, the worst case first."""
    views = [
        case
        for case in state.cases
        if case.conflicts or (case.comparison is not None and not case.comparison.agrees)
    ]
    return tuple(sorted(views, key=rank_dispute))


def make_disputes(
    state: ReviewState, labels: ReaderLabels, gallery: Gallery, form: Form | None
) -> PageSection:
    """Make the section on disagreements (in the wording of `form`), decisions, and images."""
    views = list_disputes(state)
    rows = [_make_dispute_row(state, labels, view, form) for view in views[:ROWS_SHOWN]]
    columns = (
        _CASE,
        Column("Lowest Dice"),
        Column("State", False),
        Column("Origin of the decision", False),
        Column("Reason for disagreement", False),
    )
    notes = [f"{count_of(len(views) - ROWS_SHOWN, 'more case')} not listed."] * (
        len(views) > ROWS_SHOWN
    )
    title = f"Readings that disagree ({len(views)} of {len(state.cases)} cases)"
    says = [f"{count_of(len(views), 'case')} with disagreement by the study's triggers."]
    if gallery.pictures:
        says.append(
            "The pictures show the slice with the largest difference between two readings, with "
            "the first in blue and the second in orange; the bar is 10 mm."
        )
    if gallery.n_left_out:
        says.append(
            f"{gallery.n_left_out} of the cases have no picture here, because the number of "
            "pictures is limited."
        )
    pictures = [
        ReportFigure(
            picture.picture.case_id,
            f"Dice {number(picture.dice)}; blue {labels.call(picture.first)}, orange "
            f"{labels.call(picture.second)}; {picture.picture.plane}, {picture.picture.place}",
            Drawing(case_figure, (picture.picture,), has_svg=False),
        )
        for picture in gallery.pictures
    ]
    table = ReportTable(title, columns, tuple(rows), tuple(notes))
    return PageSection(
        "Disagreements",
        (table,) if rows else (),
        notes=(*gallery.notes, *gallery.failed),
        says=tuple(says),
        pictures=tuple(pictures),
    )


def _make_dispute_row(
    state: ReviewState, labels: ReaderLabels, view: CaseView, form: Form | None
) -> Row:
    dice = rank_dispute(view)[0]
    decision = view.decision
    way = UNKNOWN
    if decision is not None:
        parts = (decision.act.value, labels.call(decision.choice), labels.hide(decision.reason))
        way = ": ".join(part for part in parts if part)
    return Row(
        (
            state.study.case(view.key).case_id,
            UNKNOWN if dice > 1 else number(dice),
            view.state.value,
            way,
            labels.hide("; ".join(form_words.describe_reasons(form, view))),
        )
    )


def make_times(state: ReviewState, labels: ReaderLabels, *, by_reader: bool) -> PageSection:
    """Make the section on the working time of all readings; times by reader only if `by_reader`."""
    readings = [one for view in state.cases for one in (*view.readings, *view.earlier) if one.hash]
    timed = [reading for reading in readings if reading.active_s > 0]
    groups: list[tuple[str, list[ReadingView]]] = [("all", timed)]
    if by_reader:
        ids = sorted((reader.reader_id for reader in state.study.readers), key=labels.rank)
        groups += [(labels.call(who), [one for one in timed if one.reader == who]) for who in ids]
    rows = tuple(_make_time_row(name, group) for name, group in groups if group or name == "all")
    columns = (
        Column("Readings of", False),
        *map(Column, ("n", "median (min)", "quartiles (min)", "total (h)")),
    )
    notes = [
        ("Active seconds count while the window is in front and the last input was within 30 s.")
    ]
    if len(readings) > len(timed):
        notes.append(f"{count_of(len(readings) - len(timed), 'reading')} without a time omitted.")
    if not by_reader:
        notes.append(
            "Times are not shown by reader, because time does not measure a reader's quality; "
            "they are available on request."
        )
    counts = _count_minutes([one.active_s / 60 for one in timed])
    figure = ReportFigure(
        "time",
        "Active minutes of the readings.",
        Drawing(time_bars, (_CLASSES, counts), has_png=False),
    )
    table = ReportTable("Active time of a reading", columns, rows, tuple(notes))
    bars = ReportTable(
        "Readings by active minutes",
        (Column("Minutes", is_number=False), Column("Readings")),
        tuple(Row((name, number(n, 0))) for name, n in zip(_CLASSES, counts, strict=True)),
    )
    return PageSection("Time", (table, bars) if timed else (table,), (figure,) if timed else ())


def _count_minutes(minutes: Sequence[float]) -> list[int]:
    edges = (0.0, *_EDGES, float("inf"))
    return [sum(low <= minute < high for minute in minutes) for low, high in pairwise(edges)]


def _make_time_row(name: str, readings: Sequence[ReadingView]) -> Row:
    minutes = [reading.active_s / 60 for reading in readings]
    spread = UNKNOWN
    if len(minutes) > 1:
        low, _, high = quantiles(minutes, n=4, method="inclusive")
        spread = f"{low:.1f} to {high:.1f}"
    middle = f"{median(minutes):.1f}" if minutes else UNKNOWN
    return Row((name, number(len(minutes), 0), middle, spread, f"{sum(minutes) / 60:.1f}"))


def make_sites(state: ReviewState, pairs: Iterable[agree.MaskPair]) -> tuple[PageSection, ...]:
    """Make the section on each site's progress and agreement; return () if there are no sites.

    The agreement is the median Dice of all pairs of readings of a site's cases.
    """
    sites = {case.case_id: case.site for case in state.study.cases}
    if not any(sites.values()):
        return ()
    values: dict[str, list[float]] = {}
    for pair in pairs:
        if isfinite(pair.dsc):
            values.setdefault(sites.get(pair.case_id, ""), []).append(pair.dsc)
    rows = []
    for site in sorted(set(sites.values())):
        views = [view for view in state.cases if state.study.case(view.key).site == site]
        n_decided = sum(view.state in _GROUPS[2][1] for view in views)
        dice = values.get(site, [])
        middle = number(median(dice), 3) if dice else UNKNOWN
        counts = (number(len(views), 0), number(n_decided, 0), number(len(dice), 0), middle)
        rows.append(Row((site or "not known", *counts)))
    names = ("Cases", "Decided", "Pairs of readings", "Median Dice")
    columns = (Column("Site", False), *map(Column, names))
    return (PageSection("Sites", (ReportTable("Cases by site", columns, tuple(rows)),)),)


def make_signatures(state: ReviewState, labels: ReaderLabels) -> PageSection:
    """Make the section with every signature, its meaning and its validity."""
    rows = [
        Row(
            (
                state.study.case(view.key).case_id,
                labels.call(signature.reader),
                signature.meaning.value,
                format_time(signature.at),
                short_key(signature.key),
                "yes" if signature.counts else f"no: {labels.hide(signature.why_not)}",
            ),
            is_small=not signature.counts,
        )
        for view in state.cases
        for signature in view.signatures
    ]
    names = ("Signed by", "as", "at (UTC)", "Key", "Counts")
    others = (Column(name, False, name in ("as", "at (UTC)", "Key")) for name in names)
    columns = (_CASE, *others)
    says = f"{count_of(len(rows), 'signature')}." if rows else "Nothing was signed."
    table = ReportTable("Signatures", columns, tuple(rows[:ROWS_SHOWN]))
    notes = [f"{len(rows) - ROWS_SHOWN} more are in the audit trail."] * (len(rows) > ROWS_SHOWN)
    tables = ((table,) if rows else ()) + ((_make_keys(state, labels),) if state.keys else ())
    return PageSection("Signatures", tables, notes=tuple(notes), says=(says,))


def _make_keys(state: ReviewState, labels: ReaderLabels) -> ReportTable:
    rows = []
    for key in sorted(state.keys, key=lambda key: labels.rank(key.reader)):
        word = "study.json" if key.is_bound else labels.call(key.by) if key.by else "nobody yet"
        ended = labels.hide(key.ended) if key.ended else UNKNOWN
        rows.append(Row((labels.call(key.reader), short_key(key.key), word, ended)))
    columns = tuple(Column(name, False) for name in ("Key of", "Key", "Word of", "Ended"))
    return ReportTable("Keys", columns, tuple(rows))


def make_chains(
    origin: str, chains: Mapping[str, Sequence[Event]], labels: ReaderLabels
) -> PageSection:
    """Make the section with each event file's last hash, which reveals if events were removed."""
    filled = [(labels.call(ev[0].reader), ev[0].at, name, ev) for name, ev in chains.items() if ev]
    rows = []
    for index, (label, _, name, events) in enumerate(sorted(filled), start=1):
        # The file name contains the reader's id and the computer's name.
        called = f"file {index}, {label}" if labels.words else name
        rows.append(
            Row(
                (
                    called,
                    number(len(events), 0),
                    format_time(events[-1].at),
                    _split(events[-1].hash),
                )
            )
        )
    columns = (
        Column("File", False),
        Column("Events"),
        Column("Last at (UTC)", False, is_whole=True),
        Column("Hash of the last event (SHA-256)", False),
    )
    says = f"study.json SHA-256 {_split(origin)}"
    table = ReportTable("Heads of all chains", columns, tuple(rows))
    return PageSection("Chains", (table,) if rows else (), says=(says,))


def format_time(at: str) -> str:
    """Format an event's time to the second, for display."""
    return at[:19].replace("T", " ")


def _split(digest: str) -> str:
    return " ".join(digest[index : index + 8] for index in range(0, len(digest), 8))


def _say_share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else UNKNOWN


def list_words(lines: Iterable[str], labels: ReaderLabels) -> tuple[str, ...]:
    """Replace readers' names and ids in lines of text with their labels."""
    return tuple(labels.hide(line) for line in lines)


# ----------------------------------------------------------------------- answers

FEWEST: Final = 5
"""Minimum number of pairs for showing limits of agreement and ICC (our choice)."""
PAIRS_SHOWN: Final = 100
"""Maximum number of reader pairs shown on the page (20 readers form 190 pairs)."""
SHARES_SHOWN: Final = 12
"""Maximum number of categories shown on the page."""
_FILLED_IN: Final = (
    "Filled in: answers that the program measured on the reader's own mask and that the reader "
    "did not change; they agree to the extent that the masks agree."
)


def tabulate_questions(questions: Sequence[CategoryAgreement], form: Form | None) -> ReportTable:
    """Make the table of reader agreement on each category question."""
    rows = []
    for question in questions:
        alpha = question.alpha if question.alpha_ordinal is None else question.alpha_ordinal
        cells = (
            number(question.n_rated, 0),
            number(alpha.value),
            range_text(alpha.low, alpha.high),
        )
        counts = (number(question.n_alone, 0), number(question.n_computed, 0))
        text = form_words.word_question(form, question.question)
        rows.append(Row((text, *cells, *counts, _say_shares(question, form))))
    columns = (
        Column("Question", is_number=False),
        *map(Column, ("Rated", "Krippendorff's alpha", "95 % interval", "Single", "Filled in")),
        Column("Proportions of answers", is_number=False),
    )
    notes = (
        (
            "Ordinal if the categories have an order, otherwise nominal. Single: lesions with an "
            "answer from one reader only, although others read the case; they are not included in "
            "alpha."
        ),
        _FILLED_IN,
    )
    return ReportTable("Answers", columns, tuple(rows), notes)


def _say_shares(agreement: CategoryAgreement, form: Form | None) -> str:
    chosen = [pair for pair in agreement.prevalence if pair[1]]
    texts = [
        f"{form_words.word_term(form, agreement.question, category)} {100 * share:.0f} %"
        for category, share in chosen[:SHARES_SHOWN]
    ]
    n_more = len(chosen) - SHARES_SHOWN
    return ", ".join([*texts, *([f"{n_more} more"] if n_more > 0 else [])])


def tabulate_numbers(
    questions: Sequence[NumberAgreement], labels: ReaderLabels, form: Form | None
) -> ReportTable:
    """Make the table of agreement between each pair of readers on numeric questions."""
    both = [(question, pair) for question in questions for pair in question.pairs]
    both.sort(key=lambda one: (one[0].question, *rank_pair(one[1], labels)))
    rows = tuple(_row_of_numbers(one, pair, labels, form) for one, pair in both[:PAIRS_SHOWN])
    columns = (
        Column("Question", is_number=False),
        Column("Readers", is_number=False),
        *map(Column, ("Pairs", "Mean difference", "its limits", "ICC(A,1)", "Filled in")),
    )
    n_more = len(both) - PAIRS_SHOWN
    more = (f"{count_of(n_more, 'more pair')}: see `mamamia review agreement`.",) * (n_more > 0)
    notes = (
        *more,
        (
            "Difference first - second; limits contain 95 % of the differences (Bland and Altman). "
            f"With fewer than {FEWEST} pairs, neither limits nor ICC are shown here. {_FILLED_IN}"
        ),
    )
    return ReportTable("Numeric answers", columns, rows, notes)


def _row_of_numbers(
    agreement: NumberAgreement, pair: PairedValues, labels: ReaderLabels, form: Form | None
) -> Row:
    names, is_turned = call_pair(pair, labels)
    limits = pair.bland_altman
    bias, low, high = limits.bias, limits.low, limits.high
    if is_turned:
        bias, low, high = 0.0 - bias, -high, -low
    unit = form_words.word_unit(form, agreement.question)
    spread = (UNKNOWN, UNKNOWN)
    if pair.n >= FEWEST:
        spread = (range_text(low, high, 2), number(pair.icc.value))
    cells = (
        number(pair.n, 0),
        f"{number(bias, 2)}{unit}",
        *spread,
        number(agreement.n_computed, 0),
    )
    return Row((form_words.word_question(form, agreement.question), names, *cells))


def call_pair(
    pair: agree.MaskAgreement | agree.LesionAgreement | PairedValues, labels: ReaderLabels
) -> tuple[str, bool]:
    """Return the labels of a pair in the order of labels, and whether the readers were swapped."""
    names = " and ".join(map(labels.call, sorted((pair.first, pair.second), key=labels.rank)))
    return names, labels.rank(pair.first) > labels.rank(pair.second)


def rank_pair(
    pair: agree.MaskAgreement | agree.LesionAgreement | PairedValues, labels: ReaderLabels
) -> list[int]:
    """Return the sort key of a pair of readers: the lower rank, then the higher rank."""
    return sorted(map(labels.rank, (pair.first, pair.second)))


REPORT: Final = "report.html"
ERROR_QUESTION: Final = "error"
"""The id of the yes/no question from whose answers the capture curve is made."""


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """Options of a report.

    Parameters
    ----------
    are_named
        Whether readers are shown by name instead of code.
    by_reader
        Whether working time is shown for each reader.
    images
        The data set with the images; None for the location in the study file.
    most_pictures
        Maximum number of images of disagreements, the worst first.
    n_resamples, seed
        Number of resamples for the intervals, and their seed; the same values in
        `measure_agreement` give the same numbers.
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
    """The report before it is rendered; `problems` lists invalid or unreadable content."""

    page: Page
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyReport:
    """The path of a report, and the invalid or unreadable content that was found."""

    path: Path
    problems: tuple[str, ...] = ()


def write_study_report(
    store: FolderStore, out: Path, choice: ReportChoice = DEFAULT, *, overwrite: bool = False
) -> StudyReport:
    """Write a study's ``report.html``.

    Raises
    ------
    FormatError
        If the events cannot be read to the end.
    SaveConflictError
        If the file exists and `overwrite` is False.
    """
    report = make_study_page(store, choice)
    text = render_page(report.page)
    Share(out).run(lambda folder: write_text_atomically(folder / REPORT, text, overwrite=overwrite))
    return StudyReport(out / REPORT, report.problems)


def make_study_page(store: FolderStore, choice: ReportChoice = DEFAULT) -> StudyPage:
    """Build a study's report."""
    reading = read_whole(store)
    state = replay_reading(store, reading)
    labels = make_labels(state, are_named=choice.are_named)
    result = agree.measure_agreement(store, n_resamples=choice.n_resamples, seed=choice.seed)
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
    result: agree.StudyAgreement,
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
    """Return a note with the number of readings answered with a different form, or ()."""
    if form is None:
        return ()
    counts = Counter(
        why_other_form(form, parse_answers_text(reading.answers))
        for view in state.cases
        for reading in view.readings
        if reading.hash
    )
    return tuple(f"{count_of(n, 'reading')} {why}" for why, n in sorted(counts.items()) if why)


def _tell_masks(result: agree.StudyAgreement) -> ReportTable:
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


def _tell_pairs(result: agree.StudyAgreement, labels: ReaderLabels) -> ReportTable:
    volumes = {(volume.first, volume.second): volume for volume in result.volumes}
    ordered = sorted(result.readers, key=lambda reader: rank_pair(reader, labels))
    rows = tuple(
        _row_of_pair(one, volumes.get((one.first, one.second)), labels)
        for one in ordered[:PAIRS_SHOWN]
    )
    columns = (
        Column("Readers", is_number=False),
        *map(
            Column,
            ("Pairs", "Dice", "HD95 (mm)", "Volume ratio", "its limits", "ICC(A,1) of volume"),
        ),
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
    agreement: agree.MaskAgreement, volume: PairedValues | None, labels: ReaderLabels
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


def _tell_lesions(lesions: Sequence[agree.LesionAgreement], labels: ReaderLabels) -> ReportTable:
    ordered = sorted(lesions, key=lambda lesion: rank_pair(lesion, labels))
    rows = tuple(_row_of_lesions(one, labels) for one in ordered[:PAIRS_SHOWN])
    columns = (
        Column("Readers", is_number=False),
        *map(
            Column,
            (
                "Both",
                "Only the first",
                "Only the second",
                "Split or merged",
                "Positive agreement",
                "95 % interval",
                "Dice of both",
            ),
        ),
    )
    n_more = len(ordered) - PAIRS_SHOWN
    more = (f"{count_of(n_more, 'more pair')}: see `mamamia review agreement`.",) * (n_more > 0)
    notes = (
        *more,
        "26-connected components, matched by overlap (IoU 0.1 or more), then a shared voxel, "
        "then centres less than 10 mm apart. Positive agreement: 2 both / (2 both + only).",
    )
    return ReportTable("Lesions, pair by pair", columns, rows, notes)


def _row_of_lesions(agreement: agree.LesionAgreement, labels: ReaderLabels) -> Row:
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


def _tell_cases(cases: Sequence[agree.CaseAgreement]) -> ReportTable:
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
        *map(Column, ("Readings", "Lowest Dice", "Mean Dice", "Mean HD95 (mm)")),
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
    """Return, for each case that was read, whether it had an error, in reading order.

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
