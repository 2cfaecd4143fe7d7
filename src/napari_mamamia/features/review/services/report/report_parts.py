"""Sections of a study's report from the study's state and answers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from statistics import median, quantiles
from typing import Final

from napari_mamamia.core.form import Form
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.rules.form_words import (
    describe_reasons,
    word_question,
    word_term,
    word_unit,
)
from napari_mamamia.features.review.rules.ratings import (
    CategoryAgreement,
    NumberAgreement,
    PairedValues,
)
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.signatures import short_key
from napari_mamamia.features.review.rules.states import Act, CaseState, CaseView, ReadingView
from napari_mamamia.features.review.services.agreement.agree import (
    LesionAgreement,
    MaskAgreement,
    MaskPair,
)
from napari_mamamia.features.review.services.look import rank_dispute
from napari_mamamia.features.review.services.report.study_figures import (
    FlowBox,
    Gallery,
    ReaderLabels,
    flow_diagram,
    time_bars,
)
from napari_mamamia.io.workspace.event_store import Event
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.page import PageSection
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
    """Return the states of the cases, as a flow diagram and as a table."""
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
        Column("Cases"),
        Column("a reading accepted"),
        Column("adjudicated"),
        Column("rejected"),
    )
    return ReportTable("How cases were decided", columns, tuple(rows))


def list_disputes(state: ReviewState) -> tuple[CaseView, ...]:
    """Return the cases with a disagreement or conflict, worst first."""
    views = [
        case
        for case in state.cases
        if case.conflicts or (case.comparison is not None and not case.comparison.agrees)
    ]
    return tuple(sorted(views, key=rank_dispute))


def make_disputes(
    state: ReviewState, labels: ReaderLabels, gallery: Gallery, form: Form | None
) -> PageSection:
    """Return the disagreements in the wording of `form`, the decisions, and images."""
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
            labels.hide("; ".join(describe_reasons(form, view))),
        )
    )


def make_times(state: ReviewState, labels: ReaderLabels, *, by_reader: bool) -> PageSection:
    """Return the working time of all readings, by reader only on request."""
    readings = [one for view in state.cases for one in (*view.readings, *view.earlier) if one.hash]
    timed = [reading for reading in readings if reading.active_s > 0]
    groups: list[tuple[str, list[ReadingView]]] = [("all", timed)]
    if by_reader:
        ids = sorted((reader.reader_id for reader in state.study.readers), key=labels.rank)
        groups += [(labels.call(who), [one for one in timed if one.reader == who]) for who in ids]
    rows = tuple(_make_time_row(name, group) for name, group in groups if group or name == "all")
    columns = (
        Column("Readings of", False),
        Column("n"),
        Column("median (min)"),
        Column("quartiles (min)"),
        Column("total (h)"),
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


def make_sites(state: ReviewState, pairs: Iterable[MaskPair]) -> tuple[PageSection, ...]:
    """Return the progress and agreement of each site; empty if there are no sites.

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
    """Return every signature with its meaning and validity."""
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
    """Return the last hash of every event file, which reveals a later removal of events."""
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
    """Return the time of an event to the second, for display."""
    return at[:19].replace("T", " ")


def _split(digest: str) -> str:
    return " ".join(digest[index : index + 8] for index in range(0, len(digest), 8))


def _say_share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else UNKNOWN


def list_words(lines: Iterable[str], labels: ReaderLabels) -> tuple[str, ...]:
    """Return the lines with the readers' labels instead of names and ids."""
    return tuple(labels.hide(line) for line in lines)


# ----------------------------------------------------------------------- answers

FEWEST: Final = 5
"""Minimum number of pairs for limits of agreement and ICC on the page. Our choice."""
PAIRS_SHOWN: Final = 100
"""Maximum number of pairs of readers on the page (20 readers have 190)."""
SHARES_SHOWN: Final = 12
"""Maximum number of categories on the page."""
_FILLED_IN: Final = (
    "Filled in: answers that the program measured on the reader's own mask and that the reader "
    "did not change; they agree to the extent that the masks agree."
)


def tabulate_questions(questions: Sequence[CategoryAgreement], form: Form | None) -> ReportTable:
    """Return the readers' agreement on each category question."""
    rows = []
    for question in questions:
        alpha = question.alpha if question.alpha_ordinal is None else question.alpha_ordinal
        cells = (
            number(question.n_rated, 0),
            number(alpha.value),
            range_text(alpha.low, alpha.high),
        )
        counts = (number(question.n_alone, 0), number(question.n_computed, 0))
        text = word_question(form, question.question)
        rows.append(Row((text, *cells, *counts, _say_shares(question, form))))
    columns = (
        Column("Question", is_number=False),
        Column("Rated"),
        Column("Krippendorff's alpha"),
        Column("95 % interval"),
        Column("Single"),
        Column("Filled in"),
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
        f"{word_term(form, agreement.question, category)} {100 * share:.0f} %"
        for category, share in chosen[:SHARES_SHOWN]
    ]
    n_more = len(chosen) - SHARES_SHOWN
    return ", ".join([*texts, *([f"{n_more} more"] if n_more > 0 else [])])


def tabulate_numbers(
    questions: Sequence[NumberAgreement], labels: ReaderLabels, form: Form | None
) -> ReportTable:
    """Return the agreement of each pair of readers on numeric questions."""
    both = [(question, pair) for question in questions for pair in question.pairs]
    both.sort(key=lambda one: (one[0].question, *rank_pair(one[1], labels)))
    rows = tuple(_row_of_numbers(one, pair, labels, form) for one, pair in both[:PAIRS_SHOWN])
    columns = (
        Column("Question", is_number=False),
        Column("Readers", is_number=False),
        Column("Pairs"),
        Column("Mean difference"),
        Column("its limits"),
        Column("ICC(A,1)"),
        Column("Filled in"),
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
    unit = word_unit(form, agreement.question)
    spread = (UNKNOWN, UNKNOWN)
    if pair.n >= FEWEST:
        spread = (range_text(low, high, 2), number(pair.icc.value))
    cells = (
        number(pair.n, 0),
        f"{number(bias, 2)}{unit}",
        *spread,
        number(agreement.n_computed, 0),
    )
    return Row((word_question(form, agreement.question), names, *cells))


def call_pair(
    pair: MaskAgreement | LesionAgreement | PairedValues, labels: ReaderLabels
) -> tuple[str, bool]:
    """Return a pair's names in the order of the labels, and whether the pair was swapped."""
    names = " and ".join(map(labels.call, sorted((pair.first, pair.second), key=labels.rank)))
    return names, labels.rank(pair.first) > labels.rank(pair.second)


def rank_pair(
    pair: MaskAgreement | LesionAgreement | PairedValues, labels: ReaderLabels
) -> list[int]:
    """Return the sort key of a pair: the ranks of both readers, the first reader's rank first."""
    return sorted(map(labels.rank, (pair.first, pair.second)))
