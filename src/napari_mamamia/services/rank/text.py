"""A ranking in words and as a page: who leads, how sure that is, what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.ranking.ranking import MethodRanking, TableRanking
from napari_mamamia.scoring.ranking.stability import Stability
from napari_mamamia.scoring.ranking.table import ALPHA, listed
from napari_mamamia.scoring.report.leaderboard import LeaderboardContent
from napari_mamamia.services.rank.output import RankSummary


@dataclass(frozen=True, slots=True)
class RankBlock:
    """One table as it is shown: a title, heads and rows of cells, and sentences below."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]


def rank_blocks(summary: RankSummary) -> tuple[RankBlock, ...]:
    """Return a block for all tables together, where there are several, and one for each."""
    blocks = [_describe_table(summary, one) for one in summary.ranking.tables]
    overall = summary.overall
    if overall is None:
        return tuple(blocks)
    lines = _say_lead(overall.algorithms, overall.methods, summary.ranking.n_draws)
    if summary.sites is not None:
        names = overall.algorithms
        for one in summary.sites.rules:
            order = ", ".join(f"{names[at]} {one.ranks[at]:g}" for at in np.argsort(one.ranks))
            lines.append(f"Sites by {one.rule}: {order}.")
        lines += _say_sites_left_out(summary)
    n = len({(one.table.site, case) for one in summary.ranking.tables for case in one.cases})
    cells = _make_rows(overall.algorithms, overall.methods, n, overall.filled)
    title = f"All {len(blocks)} tables together: mean rank, ranked again"
    return RankBlock(title, _make_heads(overall.methods), cells, tuple(lines)), *blocks


def leaderboard_content(
    summary: RankSummary, title: str = "", links: Mapping[str, str] | None = None
) -> LeaderboardContent:
    """Return what the page of a ranking shows; `links` lead from an algorithm to its own page."""
    ranking, overall = summary.ranking, summary.overall
    tables = [one.table for one in ranking.tables]
    metrics = ", ".join(dict.fromkeys(table.metric for table in tables if table.metric))
    methods = ranking.tables[0].methods if overall is None else overall.methods
    names = ", ".join(one.method.value for one in methods)
    settings = ranking.settings
    missing = settings.missing.text if settings.missing else "none may be missing"
    n_draws = f"{ranking.n_draws:,} resamples of the cases" if ranking.n_draws else "no resamples"
    facts = (
        f"{len(tables[0].algorithms)} algorithms; methods: {names}. Ties: {settings.ties.value}; "
        f"missing values: {missing}; {n_draws}, seed {settings.seed}.",
    )
    return LeaderboardContent(
        title or f"Leaderboard{f': {metrics}' if metrics else ''}",
        ranking,
        overall.methods if overall is not None else (),
        overall.filled if overall is not None else None,
        summary.sites,
        [block.lines for block in rank_blocks(summary)],
        facts,
        summary.notes,
        links or {},
    )


def _describe_table(summary: RankSummary, one: TableRanking) -> RankBlock:
    table = one.table
    better = "more" if table.is_larger_better else "less"
    n_algorithms = len(table.algorithms)
    title = (
        f"{n_algorithms} algorithm(s) on {len(one.cases)} cases{table.phrase}: {better} is better"
    )
    lines = _say_lead(table.algorithms, one.methods, summary.ranking.n_draws)
    lines += _say_changes(one)
    lines += _say_significance(one)
    rule = summary.ranking.settings.missing
    if one.filled.any() and rule is not None:
        counts = [
            f"{algorithm} {count}"
            for algorithm, count in zip(table.algorithms, one.filled.tolist(), strict=True)
            if count
        ]
        lines.append(f"Missing values, counted as {rule.text}: {listed(counts)}.")
    rows = _make_rows(table.algorithms, one.methods, len(one.cases), one.filled)
    return RankBlock(title, _make_heads(one.methods), rows, tuple(lines))


def _make_heads(methods: Sequence[MethodRanking]) -> tuple[str, ...]:
    names = tuple(one.method.value.replace("-then-", "\nthen\n") for one in methods)
    sure = ("first\n%", "rank\n95 %") if methods[0].stability else ()
    return ("algorithm", "n", "filled", *names, "score", *sure)


def _make_rows(
    names: Sequence[str], methods: Sequence[MethodRanking], n: int, filled: NDArray[np.int64]
) -> tuple[tuple[str, ...], ...]:
    """Return the algorithms in the order of the first method; score and certainty are its."""
    lead = methods[0]
    rows = []
    for at in np.argsort(lead.ranks, kind="stable").tolist():
        score = "–" if np.isnan(lead.scores[at]) else f"{lead.scores[at]:.4f}"
        cells = [
            names[at],
            f"{n}",
            f"{filled[at]}",
            *(f"{one.ranks[at]:g}" for one in methods),
            score,
        ]
        if lead.stability is not None:
            stable = lead.stability
            cells += [f"{100 * stable.first[at]:.0f}", _show_interval(stable, at, "–")]
        rows.append(tuple(cells))
    return tuple(rows)


def _find_leaders(names: Sequence[str], one: MethodRanking) -> tuple[str, ...]:
    return tuple(names[at] for at in np.flatnonzero(one.ranks == one.ranks.min()).tolist())


def _say_lead(names: Sequence[str], methods: Sequence[MethodRanking], n_draws: int) -> list[str]:
    if len(names) < 2:
        return ["One algorithm alone is first whatever it scores."]
    lead = methods[0]
    leaders = _find_leaders(names, lead)
    method = lead.method.value
    if len(leaders) == len(names):
        lines = [f"By {method} all {len(names)} share a rank: there is no leader."]
    elif len(leaders) > 1:
        lines = [f"By {method} {', '.join(leaders)} share the first rank."]
    else:
        lines = [f"By {method} {leaders[0]} leads{_say_certainty(names, lead, n_draws)}."]
    by_leaders: dict[tuple[str, ...], list[str]] = {}
    for one in methods[1:]:
        by_leaders.setdefault(_find_leaders(names, one), []).append(one.method.value)
    others = {who: how for who, how in by_leaders.items() if who != leaders}
    for who, how in others.items():
        verb = "puts" if len(how) == 1 else "put"
        if len(who) == len(names):
            lines.append(f"{', '.join(how)} {verb} nobody apart.")
        else:
            lines.append(f"{', '.join(how)} {verb} {listed(who)} first: the methods do not agree.")
    if not others and len(methods) > 1:
        verdict = "put nobody apart" if len(leaders) == len(names) else "agree on who is first"
        lines.append(f"All {len(methods)} methods {verdict}.")
    return lines


def _say_certainty(names: Sequence[str], lead: MethodRanking, n_draws: int) -> str:
    stable = lead.stability
    if stable is None:
        return ""
    at = int(np.argmin(lead.ranks))
    others = np.where(np.arange(len(names)) == at, -1.0, stable.first)
    rival = int(np.argmax(others))
    text = (
        f": first in {100 * stable.first[at]:.0f} % of {n_draws} resamples of the cases, rank "
        f"{_show_interval(stable, at, ' to ')} in 95 % of them"
    )
    if others[rival] > 0:
        text += f"; next {names[rival]}, first in {100 * others[rival]:.0f} %"
    tau = stable.kendall
    if not np.isnan(tau.median):
        text += f"; Kendall's tau-b {tau.median:.2f} ({tau.q25:.2f} to {tau.q75:.2f})"
    return text


def _show_interval(stable: Stability, at: int, between: str) -> str:
    """Return whole ranks that hold the interval; halves where ties share the mean rank."""
    low, high = np.floor(2 * stable.low[at]) / 2, np.ceil(2 * stable.high[at]) / 2
    if not np.any(stable.ranks[:, at] % 1):
        low, high = np.floor(low), np.ceil(high)
    return f"{low:g}{between}{high:g}"


def _say_changes(one: TableRanking) -> list[str]:
    lines = []
    for change in one.lead_changes:
        share = f"{len(change.cases)} of {len(one.cases)} cases"
        lines.append(
            f"What would change it: without {share} ({listed(change.cases)}) {change.challenger} "
            f"draws level with {change.leader} by {change.method.value}."
        )
    return lines


def _say_significance(one: TableRanking) -> list[str]:
    m = len(one.table.algorithms)
    if m < 2:
        return []
    apart = int(np.count_nonzero(one.significance <= ALPHA))
    n_pairs = m * (m - 1) // 2
    text = f"Significantly apart (one-sided Wilcoxon, Holm over {m * (m - 1)} tests): "
    lead = one.methods[0]
    line = f"{text}{apart} of {n_pairs} pairs"
    leaders = np.flatnonzero(lead.ranks == lead.ranks.min())
    if leaders.size == 1:
        beaten = int(np.count_nonzero(one.significance[leaders[0]] <= ALPHA))
        name = one.table.algorithms[int(leaders[0])]
        line += f"; {name} beats {beaten} of the {m - 1} others"
    return [f"{line}."]


def _say_sites_left_out(summary: RankSummary) -> list[str]:
    """Say which sites the lead over sites hangs on."""
    sites = summary.sites
    if sites is None or not sites.left_out:
        return []
    full = sites.rules[0].ranks
    changed = [
        site
        for site, one in sites.left_out
        if not np.array_equal(one.ranks == one.ranks.min(), full == full.min())
    ]
    if not changed:
        return ["Leaving out any one site changes nobody's first rank."]
    return [f"Without {listed(changed)} somebody else is first over the sites."]
