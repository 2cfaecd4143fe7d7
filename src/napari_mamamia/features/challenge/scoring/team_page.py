"""The page of a team on a leaderboard: rank, neighbours, groups with their gaps, and cases."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.names import count_of
from napari_mamamia.features.challenge.scoring.leaderboard import LeaderboardContent
from napari_mamamia.metrics.registry import Better, list_metrics
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.ranking.ranking import MethodRanking, TableRanking
from napari_mamamia.scoring.report.certainty import show_interval
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Answer,
    Column,
    ReportTable,
    Row,
    Way,
    number,
    p_text,
    range_text,
    variable_label,
)
from napari_mamamia.scoring.statistics.contrasts import (
    LEVEL,
    GroupMoments,
    gap_ends,
    range_by_chance,
)

LEAST: Final = 5
"""Smallest group for which an interval is given, found in our simulations of gap intervals."""
TEAM_FOLDER: Final = "teams"
LEADERBOARD_PAGE: Final = "leaderboard.html"

_LETTERS: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d"}
)
_LONGEST_NAME: Final = 60


def tabulate_groups(
    one: TableRanking, at: int, groupings: Sequence[Grouping]
) -> tuple[ReportTable, ...]:
    """Build one table of groups for each variable, for the algorithm with index `at`.

    The codes of the groupings are in the order of the cases in the ranking.

    Parameters
    ----------
    one
        The ranking of one table.
    at
        Index of the algorithm.
    groupings
        Groups of the cases in the ranking.
    """
    values = one.values[:, at]
    bounds = _find_bounds(one.table.metric)
    return tuple(
        _tabulate_groups(values, grouping, bounds, is_larger_better=one.table.is_larger_better)
        for grouping in groupings
        if (grouping.codes >= 0).any()
    )


def _find_bounds(metric: str) -> tuple[float, float]:
    """Return the possible range of a metric's mean, to which intervals are clipped."""
    if metric == "performance":
        return 0.0, 1.0
    spec = next((candidate for candidate in list_metrics() if candidate.name == metric), None)
    if spec is None:
        return -np.inf, np.inf
    return 0.0, 1.0 if not spec.unit and spec.better is Better.HIGHER else np.inf


def _tabulate_groups(
    values: NDArray[np.float64],
    grouping: Grouping,
    bounds: tuple[float, float],
    *,
    is_larger_better: bool,
) -> ReportTable:
    inside = [values[(grouping.codes == code) & ~np.isnan(values)] for code in
              range(len(grouping.labels))]  # fmt: skip
    counted = [indices for indices in inside if indices.size >= LEAST]
    moments = _find_moments(counted)
    ends = iter(() if moments is None else _mean_ends(moments))
    rows = []
    for label, indices in zip(grouping.labels, inside, strict=True):
        low, high = next(ends) if indices.size >= LEAST else (np.nan, np.nan)
        low, high = max(low, bounds[0]), min(high, bounds[1])
        mean = float(indices.mean()) if indices.size else np.nan
        cells = (
            label,
            f"{indices.size:,}",
            number(mean, 4),
            range_text(low, high, 4),
        )
        rows.append(Row(cells, is_small=indices.size < LEAST))
    columns = (Column("Group", is_number=False), *map(Column, ("n", "Mean", "95 %")))
    notes = [f"Groups under {LEAST} cases (grey) have no interval and are not compared."]
    if moments is not None and len(counted) > 1:
        labels = [name for name, indices in zip(grouping.labels, inside, strict=True)
                  if indices.size >= LEAST]  # fmt: skip
        notes.insert(0, _say_gap(moments, labels, is_larger_better=is_larger_better))
    n_outside = int((grouping.codes < 0).sum())
    if n_outside:
        notes.append(f"{count_of(n_outside, 'case')} outside all groups.")
    return ReportTable(variable_label(grouping.variable), columns, tuple(rows), (" ".join(notes),))


def _find_moments(groups: Sequence[NDArray[np.float64]]) -> GroupMoments | None:
    if not groups:
        return None
    return GroupMoments(
        np.array([group.size for group in groups], dtype=np.float64),
        np.array([group.mean() for group in groups]),
        np.array([group.var(ddof=1) for group in groups]),
    )


def _mean_ends(moments: GroupMoments) -> list[tuple[float, float]]:
    """Return Student's 95 % interval of each group's mean, using that group's variance."""
    from scipy.stats import t as student

    reach = student.ppf((1 + LEVEL) / 2, moments.n - 1) * np.sqrt(moments.variance / moments.n)
    return list(zip((moments.mean - reach).tolist(), (moments.mean + reach).tolist(), strict=True))


def _say_gap(moments: GroupMoments, labels: Sequence[str], *, is_larger_better: bool) -> str:
    means = moments.mean if is_larger_better else -moments.mean
    worst, best = labels[int(np.argmin(means))], labels[int(np.argmax(means))]
    gap = float(np.ptp(moments.mean))
    ends = gap_ends(moments)
    if not gap:
        return "No gap between the groups."
    sure = (
        f"The groups differ by at least {number(ends.low)}."
        if ends.low > 0
        else (
            "These cases do not show a difference between groups, but do not exclude a gap of "
            f"{number(ends.high)}."
        )
    )
    return (
        f"Gap {number(gap)}, from {best} down to {worst}; by chance alone groups of these sizes "
        f"would have {number(range_by_chance(moments.errors))} on average; true gap: between "
        f"{number(ends.low)} and {number(ends.high)} (95 %). {sure}"
    )


_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_OPEN_CASES: Final = 40
"""Number of worst cases that are initially expanded."""
_MOST_CASES: Final = 1000
_CASES_OF_SEVERAL: Final = 20
_MOST_TABLES: Final = 12

_FOR_WHOM: Final = (
    "This page names cases and their values and is for the organiser. It reveals information "
    "about a locked test set."
)


@dataclass(frozen=True, slots=True, eq=False)
class TeamDetails:
    """The content of a team's page apart from the ranks.

    The page begins with `answers` and `facts`. `notes` explain, by case, values that do not come
    from the team. `parts` are additional columns of the case table, each with a heading and values
    by case. `sections` come last.
    """

    answers: tuple[Answer, ...] = ()
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    parts: tuple[tuple[str, Mapping[str, float]], ...] = ()
    sections: tuple[PageSection, ...] = ()


def name_pages(names: Sequence[str]) -> dict[str, str]:
    """Return a file name for each team's page that is valid on every system.

    Names have at most 60 ASCII letters, digits, dots, dashes and underscores. Names that differ
    only in letter case get numbers, in the order of `names`.

    Examples
    --------
    >>> list(name_pages(["gämma", "Gamma", "../../x", "con", "腫瘍"]).values())
    ['gamma.html', 'Gamma-2.html', 'x.html', 'team-con.html', 'team.html']
    """
    taken: set[str] = set()
    pages: dict[str, str] = {}
    for name in names:
        parted = unicodedata.normalize("NFKD", name.translate(_LETTERS))
        plain = parted.encode("ascii", "ignore").decode()
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip(".-_")[:_LONGEST_NAME].rstrip(".-_")
        if not stem or _RESERVED.fullmatch(stem.partition(".")[0]):
            stem = f"team-{stem}" if stem else "team"
        count, free = 1, stem
        while free.casefold() in taken:
            count += 1
            free = f"{stem}-{count}"
        taken.add(free.casefold())
        pages[name] = f"{free}.html"
    return pages


def link_pages(names: Sequence[str]) -> dict[str, str]:
    """Map each team to its page, as linked from the leaderboard."""
    return {name: f"{TEAM_FOLDER}/{page}" for name, page in name_pages(names).items()}


def team_page(
    content: LeaderboardContent | None,
    name: str,
    details: TeamDetails,
    links: Mapping[str, str],
    title: str = "",
) -> Page:
    """Build the page of a team.

    `links` maps all teams to their pages, in the order of the leaderboard. If the team has no rank,
    `content` is None or does not contain the team.

    Parameters
    ----------
    content
        The content of the leaderboard; None if there are no ranks.
    name
        The team.
    details
        The team's attempts, groups and cases.
    links
        Pages of the teams, by team.
    title
        Title of the ranking.
    """
    answers, sections = list(details.answers), []
    if content is not None and name in content.ranking.tables[0].table.algorithms:
        standing = _Place.of(content, name)
        answers += standing.answers()
        sections += list(_describe_place(standing, details, _beside(links)))
    page = Page(
        f"{name}: {title or (content.title if content else 'leaderboard')}",
        (*details.facts, _FOR_WHOM),
        (*sections, *details.sections),
        details.warnings,
        footer=(
            "Numbers are rounded for reading; the files next to the leaderboard hold the ranks "
            "in full."
        ),
        summary=tuple(answers),
        ways=_list_ways(name, links),
    )
    return page


def _beside(links: Mapping[str, str]) -> dict[str, str]:
    """Convert links from the leaderboard into links from a team's page."""
    return {name: target.rpartition("/")[2] for name, target in links.items()}


def _list_ways(name: str, links: Mapping[str, str]) -> tuple[Way, ...]:
    order, beside = list(links), _beside(links)
    ways = [Way("← Leaderboard", f"../{LEADERBOARD_PAGE}")]
    index = order.index(name)
    if index:
        ways.append(Way(f"Before: {order[index - 1]}", beside[order[index - 1]]))
    if index + 1 < len(order):
        ways.append(Way(f"After: {order[index + 1]}", beside[order[index + 1]]))
    return tuple(ways)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A team's position: `at` is its index in the tables, `methods` are the board's methods."""

    content: LeaderboardContent
    name: str
    at: int
    methods: tuple[MethodRanking, ...]

    @classmethod
    def of(cls, content: LeaderboardContent, name: str) -> "_Place":
        """Find the position of a team in a ranking."""
        first = content.ranking.tables[0]
        return cls(
            content,
            name,
            first.table.algorithms.index(name),
            content.overall or first.methods,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return all teams in the order of the tables."""
        return self.content.ranking.tables[0].table.algorithms

    @property
    def lead(self) -> MethodRanking:
        """Return the method by which the board is sorted."""
        return self.methods[0]

    @property
    def filled(self) -> int:
        """Return the number of values that a rule filled in."""
        if self.content.overall_filled is not None:
            return int(self.content.overall_filled[self.at])
        return int(self.content.ranking.tables[0].filled[self.at])

    def neighbours(self) -> list[int]:
        """Return the leader, and the teams ranked directly before and after the team."""
        order = np.argsort(self.lead.ranks, kind="stable").tolist()
        position = order.index(self.at)
        near = [
            order[index] for index in (0, position - 1, position + 1) if 0 <= index < len(order)
        ]
        return [index for index in dict.fromkeys(near) if index != self.at]

    def answers(self) -> Iterator[Answer]:
        """Yield sentences on the team's rank and its certainty."""
        lead, at, n = self.lead, self.at, len(self.names)
        shares = int((lead.ranks == lead.ranks[at]).sum()) - 1
        tied = f", shared with {shares} other{'s' if shares > 1 else ''}" if shares else ""
        rank_text = f"Rank {lead.ranks[at]:g} of {n} by {lead.method.value}{tied}"
        yield Answer("Place", (f"{rank_text}; score {number(lead.scores[at], 4)}.",))
        stable, n_draws = lead.stability, self.content.ranking.n_draws
        if stable is not None:
            low, _, high = show_interval(stable, at, "|").partition("|")
            ends = low if low == high else f"{low} to {high}"
            sure = (
                f"In 95 % of {n_draws:,} resamples of the cases its rank is {ends}; it is first in "
                f"{100 * stable.first[at]:.0f} %."
            )
            yield Answer("How certain", (sure,))
        others = [method for method in self.methods[1:] if method.ranks[at] != lead.ranks[at]]
        if others:
            texts = ", ".join(f"{other.ranks[at]:g} by {other.method.value}" for other in others)
            yield Answer("Other methods", (f"Rank {texts}.",))


def _describe_place(
    place: _Place, details: TeamDetails, beside: Mapping[str, str]
) -> Iterator[PageSection]:
    ranked = place.content.ranking.tables
    tables = [_tabulate_methods(place, len(details.notes))]
    if len(ranked) > 1:
        tables.append(_tabulate_tables(place))
    yield PageSection("Ranks", tuple(tables))
    if len(place.names) > 1:
        yield PageSection("Neighbours", (_tabulate_neighbours(place, beside),))
    groups = tabulate_groups(ranked[0], place.at, place.content.groupings)
    if groups:
        yield PageSection("Groups", groups)
    if len(ranked) == 1:
        rows, title = _list_cases(ranked[0], place.at, details), f"Cases{ranked[0].table.phrase}"
        open_rows, more = rows[:_OPEN_CASES], rows[_OPEN_CASES:]
        first = _tabulate_cases(ranked[0], open_rows, details)
        folded: tuple[ReportTable, ...] = ()
        if more:
            further = replace(first, title=f"The next {len(more):,} cases", rows=more, notes=())
            folded = (further,)
        yield PageSection(title, (first,), folded=folded)
        return
    worst = []
    for table in ranked[:_MOST_TABLES]:
        rows = _list_cases(table, place.at, details)
        title = place.content.titles.get(table.table.metric, "")
        worst.append(_tabulate_cases(table, rows[:_CASES_OF_SEVERAL], details, title))
    yield PageSection("Cases", tuple(worst))


def _tabulate_methods(place: _Place, n_noted: int) -> ReportTable:
    """Build the table of ranks by method; `n_noted` of the filled values have their own note."""
    team, rows = place.at, []
    for method in place.methods:
        stable = method.stability
        sure = (UNKNOWN, UNKNOWN)
        if stable is not None:
            sure = (show_interval(stable, team), f"{100 * stable.first[team]:.0f}")
        score = number(method.scores[team], 4)
        rows.append(Row((method.method.value, f"{method.ranks[team]:g}", *sure, score)))
    heads = ("Rank", "Rank, 95 %", "First, %", "Score")
    columns = (Column("Method", is_number=False), *(Column(text) for text in heads))
    rule, n_filled = place.content.ranking.settings.missing, max(place.filled, n_noted)
    before = int(
        sum(table.table.stand_ins[:, team].sum() for table in place.content.ranking.tables)
    )
    counted = f", counted as {rule.text}" if rule is not None and n_filled > before else ""
    filled = f" {n_filled:,} of its values were filled in{counted}." if n_filled else ""
    notes = (
        f"{len(place.names)} teams.{filled} Rank, 95 %: its interval in 95 % of the resamples.",
    )
    return ReportTable("By each method", columns, tuple(rows), notes)


def _tabulate_tables(place: _Place) -> ReportTable:
    rows, team = [], place.at
    for table in place.content.ranking.tables:
        lead = table.methods[0]
        stable = lead.stability
        sure = UNKNOWN if stable is None else show_interval(stable, team)
        title = place.content.titles.get(table.table.metric, table.table.name)
        cells = (title, f"{len(table.cases):,}", f"{table.filled[team]:,}")
        rows.append(Row((*cells, f"{lead.ranks[team]:g}", sure, number(lead.scores[team], 4))))
    heads = ("Cases", "Filled", "Rank", "Rank, 95 %", "Score")
    columns = (Column("Table", is_number=False), *(Column(text) for text in heads))
    method = place.content.ranking.tables[0].methods[0].method.value
    return ReportTable(f"By {method} in each table", columns, tuple(rows))


def _tabulate_neighbours(place: _Place, beside: Mapping[str, str]) -> ReportTable:
    ranked, stable = place.content.ranking.tables, place.lead.stability
    is_single = len(ranked) == 1
    rows = []
    for other in place.neighbours():
        wins = nan if stable is None else 100 * float(stable.wins[place.at, other])
        cells = [place.names[other], f"{place.lead.ranks[other]:g}", number(wins, 0)]
        cells += (
            _compare_cases(ranked[0], place.at, other)
            if is_single
            else _compare_tables(ranked, place.at, other)
        )
        rows.append(Row(tuple(cells), link=beside.get(place.names[other], "")))
    heads = ["Its rank", "Ahead of it, % of resamples"]
    notes = ["Ahead of it: share of resamples in which this team has the better rank."]
    if is_single:
        heads += ["Mean difference", "Better in", "Equal in", "Worse in", "p, better", "p, worse"]
        notes.append(
            "Mean difference: this team's values minus the other's, case by case. p: one-sided "
            "Wilcoxon, corrected by Holm over all ordered pairs of teams."
        )
    else:
        heads += ["Better rank in", "Equal in", "Worse in"]
        notes.append("Better, equal, worse in: number of tables.")
    columns = (Column("Team", is_number=False), *(Column(text) for text in heads))
    return ReportTable("The leader and the neighbouring teams", columns, tuple(rows),
                       (" ".join(notes),))  # fmt: skip


def _compare_cases(one: TableRanking, at: int, other: int) -> list[str]:
    values = one.values
    apart = values[:, at] - values[:, other]
    ranks = one.case_ranks
    better = int((ranks[:, at] < ranks[:, other]).sum())
    worse = int((ranks[:, at] > ranks[:, other]).sum())
    mean = float(apart.mean()) if not np.isnan(apart).any() else nan
    return [
        number(mean, 4),
        f"{better:,}",
        f"{len(apart) - better - worse:,}",
        f"{worse:,}",
        p_text(float(one.significance[at, other])),
        p_text(float(one.significance[other, at])),
    ]


def _compare_tables(ranked: Sequence[TableRanking], at: int, other: int) -> list[str]:
    apart = np.array(
        [table.methods[0].ranks[at] - table.methods[0].ranks[other] for table in ranked]
    )
    return [
        f"{int(count):,}" for count in ((apart < 0).sum(), (apart == 0).sum(), (apart > 0).sum())
    ]


def _list_cases(one: TableRanking, at: int, details: TeamDetails) -> tuple[Row, ...]:
    """Return a row for each of the worst cases; cases without a value come first."""
    values = one.values
    sign = 1.0 if one.table.is_larger_better else -1.0
    merits = sign * np.nan_to_num(values[:, at], nan=-sign * np.inf)
    best = np.nanmax(np.column_stack([sign * values, np.full(len(values), -np.inf)]), axis=1)
    rows = []
    for index in np.argsort(merits, kind="stable")[:_MOST_CASES].tolist():
        case, value = one.cases[index], float(values[index, at])
        note = details.notes.get(case, "")
        parts = [number(column.get(case, nan), 3) for _, column in details.parts]
        cells = [case, number(value, 4), *parts, f"{one.case_ranks[index, at]:g}"]
        cells.append(number(float(sign * best[index]), 4))
        rows.append(Row((*cells, note or ("no value submitted" if isnan(value) else ""))))
    return tuple(rows)


def _tabulate_cases(
    one: TableRanking, rows: tuple[Row, ...], details: TeamDetails, named: str = ""
) -> ReportTable:
    what = named or one.table.metric or "Value"
    phrase = f": {named}" if named else one.table.phrase
    heads = (what[:1].upper() + what[1:], *(label for label, _ in details.parts), "Rank", "Best")
    columns = (
        Column("Case", is_number=False),
        *(Column(text) for text in heads),
        Column("Filled, with reason", is_number=False),
    )
    n_cases = len(one.cases)
    title = f"The worst {len(rows):,} of {n_cases:,}" if len(rows) < n_cases else f"All {n_cases:,}"
    notes = ["Rank: within the case, 1 is best. Best: the best value of any team."]
    notes += [f"Left out for all teams: {len(one.dropped):,} cases."] if one.dropped else []
    return ReportTable(f"{title} cases{phrase}, worst first", columns, rows, tuple(notes))
