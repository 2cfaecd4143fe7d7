"""The page of a published site: sortable boards, figures of aggregates, and consensus ranks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.features.challenge.io.site_files import (
    PublicNumber,
    PublicRow,
    PublicTask,
    Site,
)
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.rank_figures import (
    estimate_dots,
    rank_blobs,
    rank_podium,
    score_boxes,
    share_ranks,
)
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Answer,
    Column,
    ReportTable,
    Row,
    number,
    range_text,
    variable_label,
)

_FOOTER: Final = (
    "Numbers are rounded for reading; leaderboard.json has them in full, and "
    "leaderboard.schema.json describes it. This site contains no case ids, no values of "
    "individual cases and no values of groups."
)
_MAIN: Final = ("Score", "Performance", "Fairness")
_TITLES: Final = {"segmentation": "Masks", "classification": "Responses"}


@dataclass(frozen=True, slots=True, eq=False)
class PublicDraws:
    """The resampled scores and ranks of a task's ranked teams, in rank order.

    `titles` are the column headings of the numbers, by name.
    """

    scores: Mapping[str, NDArray[np.float64]]
    ranks: Mapping[str, NDArray[np.float64]]
    titles: Mapping[str, str] = field(default_factory=dict)


def public_page(site: Site, draws: Sequence[PublicDraws]) -> Page:
    """Build the page of a published site; `draws` has one entry per task, in the same order."""
    several = len({task.challenge for task in site.tasks}) > 1
    sections: list[PageSection] = []
    if site.overall:
        sections.append(_describe_overall(site))
    for task, drawn in zip(site.tasks, draws, strict=True):
        title = title_of(task)
        if several and task.challenge != title:
            title = f"{task.challenge}: {title}"
        sections += _describe_task(task, drawn, title)
    facts = (
        f"Every number of a measure is over {site.minimum_group} cases or more. Intervals are 95 "
        "%. Select a column heading to sort a table.",
    )
    return Page(
        site.title,
        facts,
        tuple(sections),
        footer=_FOOTER,
        summary=tuple(map(_answer_leader, site.tasks, draws)),
        created=site.created,
        software=site.software,
        is_sortable=True,
    )


def title_of(task: PublicTask) -> str:
    """Return the heading of a task."""
    return task.title or _TITLES[task.task]


def _answer_leader(task: PublicTask, drawn: PublicDraws) -> Answer:
    first = [row for row in task.rows if row.rank == 1]
    if not first:
        return Answer(f"{title_of(task)}: who leads", ("No team has a rank.",))
    names = ", ".join(row.team for row in first)
    score = _find(first[0], "Score")
    text = f"{names} {'leads' if len(first) == 1 else 'share the first rank'}"
    name = drawn.titles.get("Score", "score").rstrip("\N{NO-BREAK SPACE}↑↓").lower()
    best = " (1 is best)" if name == "mean rank" else ""
    text += f": {name} {_show(score)}{best}" if score is None or score.value is not None else ""
    text += f" on {first[0].n:,} cases."
    if len(first) == 1 and first[0].first is not None:
        text += f" First in {100 * first[0].first:.0f} % of the resamples of the cases."
    if any(row.is_better_than_chance is False for row in first):
        text += " Its balanced accuracy is no better than chance."
    return Answer(f"{title_of(task)}: who leads", (text,))


def _describe_overall(site: Site) -> PageSection:
    columns = (Column("Team", is_number=False), Column("Rank"), Column("Mean rank"))
    rows = tuple(Row((team, f"{rank}", f"{mean:g}")) for team, mean, rank in site.overall)
    note = f"Mean rank over the {len(site.tasks)} tasks, ranked again; teams ranked in every task."
    table = ReportTable("Consensus ranking of all tasks", columns, rows, (note,))
    return PageSection("All tasks", (table,))


def _describe_task(task: PublicTask, drawn: PublicDraws, title: str) -> Iterator[PageSection]:
    names = tuple(dict.fromkeys(value.name for row in task.rows for value in row.numbers))
    yield PageSection(title, tuple(_tabulate(task, names, drawn.titles)), notes=_list_notes(task))
    figures = tuple(_draw(task, drawn, names, title))
    if figures:
        yield PageSection(f"{title}: figures", (), figures)


def _list_notes(task: PublicTask) -> tuple[str, ...]:
    source = (f"Source: {task.source}",) if task.source else ()
    return (_say_definitions(task), *source, *task.notes)


def _say_definitions(task: PublicTask) -> str:
    is_ours = task.task in _TITLES
    what = f"profile {task.profile}" if is_ours else f"definition {task.task}"
    return (
        f"{task.n_cases:,} cases; {what}; ranked by {task.ranked_by}; unusable "
        f"cases: {task.rule}; {task.n_resamples:,} resamples of the cases."
    )


def _tabulate(
    task: PublicTask, names: Sequence[str], titles: Mapping[str, str]
) -> Iterator[ReportTable]:
    """Yield tables: the ranks with the main numbers, all other numbers, and the two parts."""
    main = [name for name in _MAIN if name in names]
    gated = [Column("Gated rank")] * any(row.gated_rank is not None for row in task.rows)
    columns = [
        Column("Team", is_number=False),
        *(Column(head) for head in ("Rank", "Rank, 95 %", "First, %")),
        *gated,
        *_list_columns(task, main, titles),
        *(Column(head) for head in ("Cases", "Unusable", "Submitted")),
        Column("Remark", is_number=False),
    ]
    rows = []
    for row in task.rows:
        # The mark is next to the rank, where it is seen on a phone too.
        mark = " (no better than chance)" if row.is_better_than_chance is False else ""
        rank = f"{_show_whole(row.rank)}{mark if row.rank else ''}"
        cells = [row.team, rank, _show_ranks(row), _show_share(row.first)]
        cells += [_show_whole(row.gated_rank)] * len(gated)
        cells += _show_numbers(row, main)
        cells += [f"{row.n:,}", f"{row.n_unusable:,}", row.submitted or UNKNOWN, _remark(row)]
        rows.append(Row(tuple(cells), is_small=row.rank is None, link=row.link))
    grey = " Grey: not ranked." if any(row.rank is None for row in task.rows) else ""
    note = (
        "Rank, 95 %: interval of the rank over the resamples; first: share of resamples in which "
        f"no team is better.{grey}"
    )
    notes = (note, *_list_coverage(task))
    yield ReportTable("Leaderboard", tuple(columns), tuple(rows), notes)
    team, ranked = Column("Team", is_number=False), [row for row in task.rows if row.rank]
    others = [name for name in names if name not in main]
    if others and ranked:
        lines = tuple(Row((row.team, *_show_numbers(row, others))) for row in ranked)
        columns = [team, *_list_columns(task, others, titles)]
        title = "Metrics, and fairness by variable" if task.task in _TITLES else "Measures"
        texts = ["SD: over the cases."] * any("± SD" in column.label for column in columns)
        texts += ["↑: larger is better; ↓: smaller is better."] * bool(titles)
        yield ReportTable(title, tuple(columns), lines, tuple(texts))
    if task.parts and ranked:
        heads = [
            Column(f"{part} {what} ({n:,} cases)")
            for part, n in zip(("Public", "Private"), task.parts, strict=True)
            for what in ("rank", "score")
        ]
        lines = tuple(
            Row((row.team, _show_whole(row.public_rank), _show_plain(row.public_score),
                 _show_whole(row.private_rank), _show_plain(row.private_score)))
            for row in ranked
        )  # fmt: skip
        yield ReportTable("Public and private part", (team, *heads), lines)


def _list_coverage(task: PublicTask) -> Iterator[str]:
    """Yield each note on the coverage of intervals once, with the teams to which it applies."""
    for text in dict.fromkeys(row.coverage for row in task.rows if row.coverage):
        yield f"{', '.join(row.team for row in task.rows if row.coverage == text)}: {text}"


def _list_columns(
    task: PublicTask, names: Sequence[str], titles: Mapping[str, str]
) -> list[Column]:
    """Return two columns for each number, one with the number and one with its interval."""
    with_sd = {value.name for row in task.rows for value in row.numbers if value.sd is not None}
    columns = []
    for name in names:
        label = titles.get(name) or _label(name)
        columns.append(Column(f"{label}{', mean ± SD' if name in with_sd else ''}"))
        columns.append(Column(f"{label}, 95\N{NO-BREAK SPACE}%"))
    return columns


def _show_numbers(row: PublicRow, names: Sequence[str]) -> list[str]:
    values = [_find(row, name) for name in names]
    return [text for value in values for text in (_show(value), _show_interval(value))]


def _draw(
    task: PublicTask, drawn: PublicDraws, names: Sequence[str], title: str
) -> Iterator[ReportFigure]:
    stem = title.lower().replace(" ", "-").replace(":", "")
    ranked = sorted((row for row in task.rows if row.rank), key=lambda row: row.rank or 0)
    teams = [row.team for row in ranked]
    for name in ("Dice", "Performance", "Fairness", "Score"):
        values = [_find(row, name) for row in ranked]
        numbers = {
            team: _ends(value) for team, value in zip(teams, values, strict=True)
            if value and value.value is not None
        }  # fmt: skip
        if numbers:
            label = drawn.titles.get(name, name)
            yield ReportFigure(
                f"dots-{name.lower()}-{stem}",
                f"{label} with its 95 % interval.{_list_undrawn(teams, numbers)}",
                Drawing(estimate_dots, (list(numbers), np.array(list(numbers.values())), label),
                        has_png=False),
            )  # fmt: skip
    scores = {team: drawn.scores[team] for team in teams if np.isfinite(drawn.scores[team]).any()}
    if scores:
        yield ReportFigure(
            f"boxes-{stem}",
            f"{drawn.titles.get('Score', 'Scores')} in the resamples of the cases: median, "
            f"quartiles and the central 95 %. No point is a case.{_list_undrawn(teams, scores)}",
            Drawing(score_boxes, (list(scores), [*map(_five_numbers, scores.values())],
                                  drawn.titles.get("Score", "Score")),
                    has_png=False),
        )  # fmt: skip
    if drawn.ranks:
        names_ranked = list(drawn.ranks)
        ranks = np.stack(list(drawn.ranks.values()), axis=1)
        shares = share_ranks(ranks)
        median, low, high = (np.quantile(ranks, q, axis=0) for q in (0.5, 0.025, 0.975))
        yield ReportFigure(
            f"blobs-{stem}",
            "Rank stability: the area of a blob is the share of resamples, the cross the median, "
            "the bar holds 95 %.",
            Drawing(rank_blobs, (names_ranked, shares, median, low, high), has_png=False),
        )
        yield ReportFigure(
            f"podium-{stem}",
            "Podium: share of resamples in which a team is first, second or third.",
            Drawing(rank_podium, (names_ranked, shares[:, :3]), has_png=False),
        )


def _list_undrawn(teams: Sequence[str], drawn: Mapping[str, object]) -> str:
    """Name the teams that a figure leaves out, because they have no number."""
    others = [team for team in teams if team not in drawn]
    return f" Without a number: {', '.join(others)}." if others else ""


def _five_numbers(scores: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.nanquantile(scores, (0.025, 0.25, 0.5, 0.75, 0.975)).tolist())


def _ends(value: PublicNumber | None) -> tuple[float, float, float]:
    numbers = (None, None, None) if value is None else (value.low, value.value, value.high)
    low, middle, high = (nan if number is None else number for number in numbers)
    return low, middle, high


def _find(row: PublicRow, name: str) -> PublicNumber | None:
    return next((value for value in row.numbers if value.name == name), None)


def _label(name: str) -> str:
    kind, _, variable = name.partition(", ")
    label = variable_label(variable)
    return f"{kind}, {label[:1].lower()}{label[1:]}" if variable else kind


def _show(value: PublicNumber | None) -> str:
    if value is None or value.value is None:
        return UNKNOWN
    spread = "" if value.sd is None else f" ± {number(value.sd)}"
    return f"{number(value.value, 4 if value.sd is None else 3)}{spread}"


def _show_interval(value: PublicNumber | None) -> str:
    low, _, high = _ends(value)
    return range_text(low, high)


def _show_ranks(row: PublicRow) -> str:
    if row.rank_low is None or row.rank_high is None:
        return UNKNOWN
    ends = (f"{row.rank_low:g}", f"{row.rank_high:g}")
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _show_share(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.0f}"


def _show_whole(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value}"


def _show_plain(value: float | None) -> str:
    return UNKNOWN if value is None else number(value, 4)


def _remark(row: PublicRow) -> str:
    texts = ["not ranked"] * (row.rank is None)
    texts += ["masks are copies of references"] * row.is_alarming
    texts += ["scores as given"] * row.is_as_given
    texts += [row.remark] * bool(row.remark)
    return "; ".join(texts)
