"""Text about a ranking: the leader, the certainty of the lead, and what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.names import count_of, name_some
from napari_mamamia.features.challenge.scoring.leaderboard import LeaderboardContent, name_overall
from napari_mamamia.features.challenge.services.rank.output import RankSummary
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.ranking.ranking import MethodRanking, TableRanking
from napari_mamamia.scoring.ranking.table import ALPHA, MissingRule
from napari_mamamia.scoring.report.certainty import (
    describe_stability,
    few_cases,
    judge_certainty,
    show_interval,
)
from napari_mamamia.scoring.report.text import Answer, number


@dataclass(frozen=True, slots=True)
class RankBlock:
    """A table for display: a title, a header, rows of cells, and sentences below the table."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]


def rank_blocks(summary: RankSummary) -> tuple[RankBlock, ...]:
    """Return one block per table, preceded by an overall block if there are several tables."""
    blocks = [_describe_table(summary, table) for table in summary.ranking.tables]
    overall = summary.overall
    if overall is None:
        return tuple(blocks)
    n, n_draws = _count_cases(summary), summary.ranking.n_draws
    lines = _say_lead(overall.algorithms, overall.methods, n_draws, n)
    if summary.sites is not None:
        names = overall.algorithms
        for rule in summary.sites.rules:
            order = ", ".join(
                f"{names[index]} {rule.ranks[index]:g}" for index in np.argsort(rule.ranks)
            )
            lines.append(f"Sites by {rule.rule}: {order}.")
        lines += _say_sites_left_out(summary)
    cells = _make_rows(overall.algorithms, overall.methods, n, overall.filled)
    title = name_overall(len(blocks), overall.methods[0])
    return RankBlock(title, _make_heads(overall.methods), cells, tuple(lines)), *blocks


def leaderboard_content(
    summary: RankSummary,
    title: str = "",
    links: Mapping[str, str] | None = None,
    groupings: tuple[Grouping, ...] = (),
) -> LeaderboardContent:
    """Return the content of the leaderboard page; `links` maps an algorithm to its own page.

    Parameters
    ----------
    summary
        The results.
    title
        Title of the page; "" for the default.
    links
        Pages of the algorithms, by name.
    groupings
        Groups of the cases.
    """
    ranking, overall = summary.ranking, summary.overall
    tables = [table.table for table in ranking.tables]
    metrics = ", ".join(dict.fromkeys(table.metric for table in tables if table.metric))
    methods = ranking.tables[0].methods if overall is None else overall.methods
    names = ", ".join(method.method.value for method in methods)
    settings = ranking.settings
    missing = settings.missing.text if settings.missing else "no missing values allowed"
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
        # The title already names the first table.
        [
            _say_filled(ranking.tables[0], settings.missing) if overall is None else (),
            *(block.lines for block in rank_blocks(summary)[1:]),
        ],
        facts,
        summary.notes,
        links or {},
        answer_first(summary),
        groupings,
    )


def order_names(summary: RankSummary) -> tuple[str, ...]:
    """Return the algorithms in leaderboard order."""
    overall, first = summary.overall, summary.ranking.tables[0]
    ranks = (first.methods if overall is None else overall.methods)[0].ranks
    return tuple(
        first.table.algorithms[index] for index in np.argsort(ranks, kind="stable").tolist()
    )


def answer_first(summary: RankSummary) -> tuple[Answer, ...]:
    """Describe the first method's leader, its certainty, and what would change the lead."""
    overall, first = summary.overall, summary.ranking.tables[0]
    names = first.table.algorithms if overall is None else overall.algorithms
    methods = first.methods if overall is None else overall.methods
    if len(names) < 2:
        return (Answer("Who leads", _say_agreement(names, methods)),)
    lead = methods[0]
    n_cases = len(first.cases) if overall is None else _count_cases(summary)
    n = count_of(n_cases, "case")
    if overall is not None:
        n = f"mean rank over {len(summary.ranking.tables)} tables"
    leaders = _find_leaders(names, lead)
    score = number(float(lead.scores[int(np.argmin(lead.ranks))]), 4)
    who = f"{_say_leaders(names, lead).removesuffix('.')} (score {score}; {n})."
    sure = list(_say_agreement(names, methods))
    if lead.stability is not None and len(leaders) == 1:
        certainty = _say_certainty(names, lead, summary.ranking.n_draws)
        sure.insert(0, f"{judge_certainty(lead, n_cases)} {certainty}.")
    elif lead.stability is not None and len(leaders) < len(names):
        shares = [(leader, lead.stability.first[names.index(leader)]) for leader in leaders]
        texts = [f"{name} {100 * share:.0f} %" for name, share in shares]
        sure.insert(
            0,
            "Undecided: share of resamples of the cases in which each is first: "
            f"{name_some(texts, 3)}.",
        )
    if overall is None:
        sure += _say_significance(first)
        changes = [f"W{text[1:]}" for text in _say_changes(first)]
    else:
        changes = _say_sites_left_out(summary)
    answers = [Answer("Who leads", (who,)), Answer("How certain", tuple(sure))]
    if changes:
        answers.append(Answer("What would change it", tuple(changes)))
    return tuple(answers)


def _describe_table(summary: RankSummary, one: TableRanking) -> RankBlock:
    table = one.table
    better = "larger" if table.is_larger_better else "smaller"
    n_algorithms = len(table.algorithms)
    title = (
        f"{count_of(n_algorithms, 'algorithm')}, "
        f"{count_of(len(one.cases), 'case')}{table.phrase}: {better} is better"
    )
    n_draws, n_cases = summary.ranking.n_draws, len(one.cases)
    lines = _say_lead(table.algorithms, one.methods, n_draws, n_cases)
    lines += [f"What would change it: {text}" for text in _say_changes(one)]
    lines += _say_significance(one)
    lines += _say_filled(one, summary.ranking.settings.missing)
    rows = _make_rows(table.algorithms, one.methods, len(one.cases), one.filled)
    return RankBlock(title, _make_heads(one.methods), rows, tuple(lines))


def _say_filled(one: TableRanking, rule: MissingRule | None) -> list[str]:
    """Return sentences on missing values that the ranking's rule or the scoring filled in."""
    before = one.table.stand_ins.sum(axis=0)
    texts = [(before, "Cases without a usable answer, with the score given by the scoring's rule")]
    if rule is not None and not one.dropped:
        texts.append((one.filled - before, f"Missing values, replaced by {rule.text}"))
    lines = []
    for counts, text in texts:
        shares = [
            f"{name} {count}"
            for name, count in zip(one.table.algorithms, counts.tolist(), strict=True)
            if count
        ]
        if shares:
            lines.append(f"{text}: {name_some(shares, 3)}.")
    return lines


def _make_heads(methods: Sequence[MethodRanking]) -> tuple[str, ...]:
    names = tuple(method.method.value.replace("-then-", "\nthen\n") for method in methods)
    sure = ("first\n%", "rank\n95 %") if methods[0].stability else ()
    return ("algorithm", "n", "filled", *names, "score", *sure)


def _make_rows(
    names: Sequence[str], methods: Sequence[MethodRanking], n: int, filled: NDArray[np.int64]
) -> tuple[tuple[str, ...], ...]:
    """Return the algorithms as rows in the first method's order, with score and certainty."""
    lead = methods[0]
    rows = []
    for index in np.argsort(lead.ranks, kind="stable").tolist():
        score = "–" if np.isnan(lead.scores[index]) else f"{lead.scores[index]:.4f}"
        cells = [
            names[index],
            f"{n}",
            f"{filled[index]}",
            *(f"{method.ranks[index]:g}" for method in methods),
            score,
        ]
        if lead.stability is not None:
            stable = lead.stability
            cells += [f"{100 * stable.first[index]:.0f}", show_interval(stable, index, "–")]
        rows.append(tuple(cells))
    return tuple(rows)


def _find_leaders(names: Sequence[str], one: MethodRanking) -> tuple[str, ...]:
    return tuple(names[index] for index in np.flatnonzero(one.ranks == one.ranks.min()).tolist())


def _count_cases(summary: RankSummary) -> int:
    return len(
        {(table.table.site, case) for table in summary.ranking.tables for case in table.cases}
    )


def _say_lead(
    names: Sequence[str], methods: Sequence[MethodRanking], n_draws: int, n_cases: int
) -> list[str]:
    """Describe the leader, the certainty of the lead, and the results of the other methods."""
    if len(names) < 2:
        return list(_say_agreement(names, methods))
    lead = methods[0]
    who = _say_leaders(names, lead)
    if len(_find_leaders(names, lead)) == 1:
        certainty = _say_certainty(names, lead, n_draws)
        who = f"{who.removesuffix('.')}: {certainty}." if certainty else who
        few = few_cases(n_cases)
        who += f" The certainty is undecided: {few}." if few and lead.stability else ""
    return [who, *_say_agreement(names, methods)]


def _say_leaders(names: Sequence[str], lead: MethodRanking) -> str:
    leaders, method = _find_leaders(names, lead), lead.method.value
    if len(leaders) == len(names):
        return f"By {method} all {len(names)} share a rank: there is no leader."
    if len(leaders) > 1:
        return f"By {method} {', '.join(leaders)} share the first rank."
    return f"By {method} {leaders[0]} leads."


def _say_agreement(names: Sequence[str], methods: Sequence[MethodRanking]) -> tuple[str, ...]:
    """Describe whether the other methods have the same algorithms in first place."""
    if len(names) < 2:
        return ("A single algorithm is first with any score.",)
    leaders, lines = _find_leaders(names, methods[0]), []
    by_leaders: dict[tuple[str, ...], list[str]] = {}
    for method in methods[1:]:
        by_leaders.setdefault(_find_leaders(names, method), []).append(method.method.value)
    others = {who: how for who, how in by_leaders.items() if who != leaders}
    for who, how in others.items():
        verb = "puts" if len(how) == 1 else "put"
        if len(who) == len(names):
            lines.append(f"{', '.join(how)} {verb} all on one rank.")
        else:
            lines.append(
                f"{', '.join(how)} {verb} {name_some(who, 3)} first: the methods do not agree."
            )
    if not others and len(methods) > 1:
        verdict = (
            "do not separate the algorithms"
            if len(leaders) == len(names)
            else "agree on who is first"
        )
        lines.append(f"All {len(methods)} methods {verdict}.")
    return tuple(lines)


def _say_certainty(names: Sequence[str], lead: MethodRanking, n_draws: int) -> str:
    text = describe_stability(names, lead, n_draws)
    tau = None if lead.stability is None else lead.stability.kendall
    if tau is not None and not np.isnan(tau.median):
        text += f"; Kendall's tau-b {tau.median:.2f} ({tau.q25:.2f} to {tau.q75:.2f})"
    return text


def _say_changes(one: TableRanking) -> list[str]:
    lines = []
    for change in one.lead_changes:
        share = f"{len(change.cases)} of {len(one.cases)} cases"
        lines.append(
            f"without {share} ({name_some(change.cases, 3)}), {change.challenger} "
            f"draws level with {change.leader} by {change.method.value}."
        )
    return lines


def _say_significance(one: TableRanking) -> list[str]:
    m = len(one.table.algorithms)
    if m < 2:
        return []
    apart = int(np.count_nonzero(one.significance <= ALPHA))
    n_pairs = m * (m - 1) // 2
    text = f"Significant differences (one-sided Wilcoxon, Holm over {m * (m - 1)} tests): "
    lead = one.methods[0]
    line = f"{text}{apart} of {n_pairs} pairs"
    leaders = np.flatnonzero(lead.ranks == lead.ranks.min())
    if leaders.size == 1:
        beaten = int(np.count_nonzero(one.significance[leaders[0]] <= ALPHA))
        name = one.table.algorithms[int(leaders[0])]
        line += f"; {name} beats {beaten} of the {m - 1} others"
    return [f"{line}."]


def _say_sites_left_out(summary: RankSummary) -> list[str]:
    """Return sentences on sites without which the leader over sites would change."""
    sites = summary.sites
    if sites is None or not sites.left_out:
        return []
    full = sites.rules[0].ranks
    changed = [
        site
        for site, ranks in sites.left_out
        if not np.array_equal(ranks.ranks == ranks.ranks.min(), full == full.min())
    ]
    if not changed:
        return ["Leaving out any one site does not change the first rank."]
    return [f"Without {name_some(changed, 3)}, another algorithm is first over the sites."]
