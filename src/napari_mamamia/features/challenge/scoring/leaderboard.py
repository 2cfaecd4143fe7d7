"""The leaderboard page: the leader, the certainty of the lead, and all ranks and scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.features.challenge.scoring.sites import SiteMeans, SitesResult
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.ranking.ranking import MethodRanking, Ranking, TableRanking
from napari_mamamia.scoring.ranking.table import ALPHA
from napari_mamamia.scoring.report.certainty import show_interval
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.rank_figures import (
    draw_stability,
    podium,
    rank_counts,
    significance_map,
    site_heat_map,
)
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import Answer, Column, ReportTable, Row, number, p_text

_MOST_TABLES: Final = 12
"""Maximum number of tables with their own sections; the data files contain all tables."""

_MOST_ON_PODIUM: Final = 7
"""Maximum number of algorithms in a podium plot, which gives each algorithm a colour."""

_LONGEST_HEAD: Final = 18

_MOST_SPREAD: Final = 10
"""Maximum number of algorithms for which tables of pairs are initially expanded."""

LEADERBOARD_FOOTER: Final = (
    "Numbers are rounded for reading; rank.json, rank_details.json, ranks.csv and case_ranks.csv "
    "next to this page contain the exact values. A team's name links to its own page."
)


@dataclass(frozen=True, slots=True, eq=False)
class LeaderboardContent:
    """The content of a leaderboard page.

    `sentences` holds the texts on all tables together (if there are several), then those on each
    table. `links` maps an algorithm's name to its page. The page begins with `summary` and `facts`;
    `warnings` come before the sections. On the teams' pages, `groupings` divide the cases of the
    first table. `titles` maps a metric to the title of its table.
    """

    title: str
    ranking: Ranking
    overall: tuple[MethodRanking, ...]
    overall_filled: NDArray[np.int64] | None
    sites: SitesResult | None
    sentences: Sequence[Sequence[str]]
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    summary: tuple[Answer, ...] = ()
    groupings: tuple[Grouping, ...] = ()
    titles: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def leaderboard_page(content: LeaderboardContent) -> Page:
    """Build the leaderboard page: the summary first, then pairs, cases and sites."""
    warnings = content.warnings
    left_out = len(content.ranking.tables) - _MOST_TABLES
    if left_out > 0:
        warnings = (*warnings, f"{left_out} more tables are in rank.json, not on this page.")
    return Page(
        content.title,
        content.facts,
        ranking_sections(content),
        warnings,
        footer=LEADERBOARD_FOOTER,
        summary=content.summary,
    )


def ranking_sections(content: LeaderboardContent) -> tuple[PageSection, ...]:
    """Build the sections of a ranking: boards, pairs, cases, sites."""
    ranking, sites = content.ranking, content.sites
    sections: list[PageSection] = []
    texts = list(content.sentences)
    several = bool(content.overall) and len(ranking.tables) > 1
    if several and content.overall_filled is not None:
        names = ranking.tables[0].table.algorithms
        n = len({(table.table.site, case) for table in ranking.tables for case in table.cases})
        table = _make_board(
            names, content.overall, n, content.overall_filled, content.links,
            name_overall(len(ranking.tables), content.overall[0]),
        )  # fmt: skip
        figures = tuple(draw_stability("all", names, content.overall, ranking.n_draws))
        sections.append(PageSection("All together", (table,), figures, says=tuple(texts.pop(0))))
    elif content.overall:
        texts.pop(0)
    for ranked, sentences in list(zip(ranking.tables, texts, strict=False))[:_MOST_TABLES]:
        sections += _describe_table(ranked, sentences, content, several)
    if sites is not None and len(sites.sites) > 1:
        sections.append(_describe_sites(ranking, sites))
    return tuple(sections)


def name_overall(n_tables: int, method: MethodRanking) -> str:
    """Return the title of the overall ranking of several tables, by its first method."""
    if method.method is RankMethod.COMPOSITE:
        return f"{n_tables} measures together, as the challenge's definition ranks"
    return f"All {n_tables} tables together: mean rank, ranked again"


def _describe_table(
    one: TableRanking, sentences: Sequence[str], content: LeaderboardContent, several: bool
) -> Iterator[PageSection]:
    """Yield the sections for a table; if there are several tables, only the board."""
    table, n_draws = one.table, content.ranking.n_draws
    names = table.algorithms
    board = _make_board(
        names, one.methods, len(one.cases), one.filled, content.links,
        f"{len(names)} algorithms on {len(one.cases):,} cases"
f"{table.phrase}: {'larger' if table.is_larger_better else 'smaller'} is better",
    )  # fmt: skip
    stem = "-".join(name for name in (table.task, table.metric, table.site) if name) or "table"
    # with several tables only the figure of ranks, to limit the length of the page
    methods = one.methods[:1] if several else one.methods
    figures = tuple(draw_stability(stem, names, methods, n_draws))[: 1 if several else None]
    name = content.titles.get(table.metric) or table.phrase.strip().removeprefix("by ")
    title = name if several else "Leaderboard"
    yield PageSection(f"{title[:1].upper()}{title[1:]}", (board,), figures, says=tuple(sentences))
    if several or len(names) < 2:
        return
    yield _describe_pairs(one)
    yield _describe_cases(one, content.ranking.settings.seed)


def _make_board(
    names: Sequence[str],
    methods: Sequence[MethodRanking],
    n: int,
    filled: NDArray[np.int64],
    links: Mapping[str, str],
    title: str,
) -> ReportTable:
    """Build the table of algorithms in the first method's order, with ranks by other methods."""
    lead = methods[0]
    stable = lead.stability
    sure = ("First, %", "Rank, 95 %") if stable is not None else ()
    covers = ("Rank, covered",) if lead.covering is not None else ()
    headings = (
        "Rank",
        "Score",
        *sure,
        *covers,
        "Cases",
        "Filled",
        *(m.method for m in methods[1:]),
    )
    rows = []
    for index in np.argsort(lead.ranks, kind="stable").tolist():
        cells = [names[index], f"{lead.ranks[index]:g}", number(lead.scores[index], 4)]
        if stable is not None:
            cells += [f"{100 * stable.first[index]:.0f}", show_interval(stable, index)]
        if lead.covering is not None:
            low, high = lead.covering.marginal[index]
            cells.append(f"{low:g} to {high:g}")
        cells += [f"{n:,}", f"{filled[index]:,}", *(f"{m.ranks[index]:g}" for m in methods[1:])]
        rows.append(Row(tuple(cells), link=links.get(names[index], "")))
    notes = [
        (
            f"Rank and score by {lead.method}; the last columns are the ranks by the other "
            "methods. Filled: missing values that a rule replaced."
        )
    ]
    if stable is not None:
        notes.append(
            "First: share of resamples of the cases in which it has the best rank, also if tied. "
            "Rank, 95 %: interval of its rank in 95 % of them."
        )
    if covers:
        notes.append("Rank, covered: contains the true rank in at least 95 % (Mogstad et al.).")
    columns = (Column("Algorithm", is_number=False), *(Column(text) for text in headings))
    return ReportTable(title, columns, tuple(rows), tuple(notes))


def _describe_pairs(one: TableRanking) -> PageSection:
    lead, names = one.methods[0], one.table.algorithms
    order = np.argsort(lead.ranks, kind="stable")
    ordered = [names[index] for index in order.tolist()]
    p_values = one.significance[np.ix_(order, order)]
    tables = [
        make_matrix(
            "p-values: row better than column",
            ordered,
            [["" if np.isnan(p) else p_text(p) for p in row] for row in p_values.tolist()],
            "One-sided Wilcoxon signed-rank tests, corrected by Holm over all ordered pairs.",
        )
    ]
    if lead.stability is not None:
        wins = lead.stability.wins[np.ix_(order, order)]
        tables.append(
            make_matrix(
                f"Share of resamples in which the row has a better rank by {lead.method}, %",
                ordered,
                [["" if np.isnan(w) else f"{100 * w:.0f}" for w in row] for row in wins.tolist()],
                "Ties count for neither.",
            )
        )
    figure = ReportFigure(
        "significance",
        f"Dark: the row is better than the column, p at most {ALPHA:g} after Holm. Pale: "
        "no significant difference in these cases.",
        Drawing(significance_map, (ordered, p_values, ALPHA), has_png=False),
    )
    if len(names) <= _MOST_SPREAD:
        return PageSection("Pairwise comparison", tuple(tables), (figure,))
    return PageSection("Pairwise comparison", (), (figure,), folded=tuple(tables))


def _shorten_name(name: str) -> str:
    """Shorten a name for a column heading; rows show the full name."""
    return name if len(name) <= _LONGEST_HEAD else f"{name[: _LONGEST_HEAD - 1]}…"


def make_matrix(
    title: str, names: Sequence[str], cells: Sequence[Sequence[str]], note: str
) -> ReportTable:
    """Build a square table whose rows and columns have the same names.

    Parameters
    ----------
    title, note
        Title of the table, and a note below it.
    names
        Names of the rows and columns.
    cells
        Cell texts by row and column.
    """
    columns = (Column("", is_number=False), *(Column(_shorten_name(name)) for name in names))
    rows = tuple(Row((name, *row)) for name, row in zip(names, cells, strict=True))
    return ReportTable(title, columns, rows, (note,))


def _describe_cases(one: TableRanking, seed: int) -> PageSection:
    lead, names = one.methods[0], one.table.algorithms
    order = np.argsort(lead.ranks, kind="stable")
    ordered = [names[index] for index in order.tolist()]
    ranks = one.case_ranks[:, order]
    m = len(names)
    full = np.clip(np.ceil(ranks).astype(np.intp) - 1, 0, m - 1)
    counts = np.stack([np.bincount(column, minlength=m) for column in full.T])
    heads = [f"{rank}" for rank in range(1, m + 1)]
    columns = (Column("Algorithm", is_number=False), *(Column(head) for head in heads))
    rows = tuple(
        Row((name, *(f"{n:,}" if n else "" for n in row)))
        for name, row in zip(ordered, counts.tolist(), strict=True)
    )
    table = ReportTable(
        "Number of cases with each rank", columns, rows,
        ("Average ranks are rounded up to whole ranks.",),
    )  # fmt: skip
    figures = [
        ReportFigure(
            "rank-counts",
            "Cases by rank: dark where an algorithm often had that rank.",
            Drawing(rank_counts, (ordered, counts), has_png=False),
        )
    ]
    if m <= _MOST_ON_PODIUM:
        values = one.values[:, order]
        figures.append(
            ReportFigure(
                "podium",
                "Each case is a line over the algorithms in their order in that case; ties "
                f"are broken at random (seed {seed}).",
                Drawing(podium, (ordered, ranks, values, seed), has_png=False),
            )
        )
    return PageSection("Cases", (table,), tuple(figures))


def _describe_sites(ranking: Ranking, sites: SitesResult) -> PageSection:
    names = sites.algorithms
    larger = {(t.table.task, t.table.metric): t.table.is_larger_better for t in ranking.tables}
    tables = [
        _tabulate_ranks(
            "Ranks over sites, all sites weighted equally",
            names,
            [rule.rule for rule in sites.rules],
            [rule.ranks for rule in sites.rules],
        )
    ]
    if sites.left_out:
        tables.append(
            _tabulate_ranks(
                "Ranks by fets-2022 without a site",
                names,
                [f"without {site}" for site, _ in sites.left_out],
                [ranks.ranks for _, ranks in sites.left_out],
            )
        )
    figures = []
    for index, means in enumerate(sites.means):
        tables.append(_tabulate_means(names, means))
        what = " ".join(name for name in (means.task, means.metric) if name) or "value"
        is_larger = larger.get((means.task, means.metric), True)
        figures.append(
            ReportFigure(
                f"sites-{index}",
                f"Mean {what} by site; dark is good; a cross means not run there.",
                Drawing(site_heat_map, (means.sites, names, means.means, is_larger), has_png=False),
            )
        )
    notes = []
    if sites.small:
        notes.append(f"Sites with under 10 cases: {', '.join(sites.small)}.")
    return PageSection("Sites", tuple(tables), tuple(figures), tuple(notes))


def _tabulate_ranks(
    title: str, names: Sequence[str], heads: Sequence[str], ranks: Sequence[NDArray[np.float64]]
) -> ReportTable:
    columns = (Column("Algorithm", is_number=False), *(Column(head) for head in heads))
    rows = tuple(
        Row((name, *(f"{rank[index]:g}" for rank in ranks))) for index, name in enumerate(names)
    )
    return ReportTable(title, columns, rows)


def _tabulate_means(names: Sequence[str], means: SiteMeans) -> ReportTable:
    what = " ".join(key for key in (means.task, means.metric) if key) or "value"
    heads = [
        f"{site} (n = {n_cases})"
        for site, n_cases in zip(means.sites, means.n.max(axis=1).tolist(), strict=True)
    ]
    columns = (
        Column("Algorithm", is_number=False),
        *(Column(head) for head in heads),
        Column("Spread"),
        Column("Worst site", is_number=False),
    )
    rows = []
    for index, name in enumerate(names):
        worst = int(means.worst[index])
        cells = (
            name,
            *(number(value, 4) for value in means.means[:, index].tolist()),
            number(float(means.spread[index]), 4),
            means.sites[worst] if worst >= 0 else "–",
        )
        rows.append(Row(cells))
    return ReportTable(f"Mean {what} by site", columns, tuple(rows))
