"""Rank one or several tables by every method, with stability and possible lead changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import RankMethod, RankResampling
from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.ranking.draws import NamedDraws, check_draws, weights_of
from napari_mamamia.scoring.ranking.methods import (
    Composite,
    Scorer,
    Weights,
    methods_for,
    rank_scores,
)
from napari_mamamia.scoring.ranking.signed_rank import better_p_values
from napari_mamamia.scoring.ranking.stability import (
    CoveringIntervals,
    PairMoments,
    Stability,
    can_cover,
    stability_of,
)
from napari_mamamia.scoring.ranking.table import (
    Merits,
    RankingTable,
    RankSettings,
    comparable,
    fill_missing,
)

PARITY_REASON = (
    "challengeR 1.0.5 gives the copies of a drawn case one name. So rank-then-aggregate ranks "
    "them together (the weight of a case drawn k times is k squared, ranks exceed the number of "
    "algorithms) and test-then-rank tests each case once: use it only to repeat its figures"
)
"""Reason why challengeR's resampling is available but is not the default."""


@dataclass(frozen=True, slots=True, eq=False)
class MethodRanking:
    """The ranking of m algorithms by one method.

    `scores` (m,) in their usual form, nan where an algorithm has none (it is ranked last); `ranks`
    (m,), 1 is best; `stability` None without resamples; `covering` if requested and possible.
    """

    method: RankMethod
    scores: NDArray[np.float64]
    ranks: NDArray[np.float64]
    stability: Stability | None = None
    covering: CoveringIntervals | None = None


@dataclass(frozen=True, slots=True)
class LeadChange:
    """The fewest cases whose removal lets another algorithm draw level with the leader.

    The removed cases are those in which the leader is furthest ahead.
    """

    method: RankMethod
    leader: str
    challenger: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TableRanking:
    """The ranking of one table.

    `cases` are those that counted, `dropped` those left out by the rule, `filled` (m,) the number
    of values filled by the rule; `case_ranks` (n, m). `significance` (m, m): p-value of "row better
    than column", corrected by Holm over all ordered pairs, nan on the diagonal.
    """

    table: RankingTable
    cases: tuple[str, ...]
    dropped: tuple[str, ...]
    filled: NDArray[np.int64]
    case_ranks: NDArray[np.float64]
    methods: tuple[MethodRanking, ...]
    significance: NDArray[np.float64]
    lead_changes: tuple[LeadChange, ...]

    @property
    def values(self) -> NDArray[np.float64]:
        """Return the values (n, m) of the cases that counted, nan where an algorithm gave none."""
        if not self.dropped:
            return self.table.values
        return self.table.values[np.isin(self.table.cases, self.cases)]

    def by(self, method: RankMethod) -> MethodRanking:
        """Return the result of one method."""
        return next(ranked for ranked in self.methods if ranked.method is method)


@dataclass(frozen=True, slots=True, eq=False)
class OverallRanking:
    """Ranking over all tables by each method: the tables' ranks are averaged and ranked again.

    Tables of one site are averaged first, so that each site counts equally. The scores are those
    mean ranks; `filled` (m,) is the sum over the tables.
    """

    algorithms: tuple[str, ...]
    methods: tuple[MethodRanking, ...]
    filled: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The rankings of all tables, and the overall ranking if there are several tables."""

    tables: tuple[TableRanking, ...]
    overall: OverallRanking | None
    settings: RankSettings
    n_draws: int


def rank_tables(
    tables: Sequence[RankingTable],
    settings: RankSettings,
    draws: NamedDraws | None = None,
    composite: Composite | None = None,
) -> Ranking:
    """Return the ranking of tables of the same algorithms.

    `composite` is the composite score of a single table. Without `draws`, tables of the same cases
    share their resamples.

    Parameters
    ----------
    tables
        Tables of the same algorithms.
    settings
        Methods and rules.
    draws
        Resamples by name; None draws them with the settings' seed.
    composite
        The challenge's own score of a single table.

    Raises
    ------
    ValueError
        If the algorithms differ, or as `rank_table`.
    """
    if len({table.algorithms for table in tables}) != 1:
        raise ValueError(
            "expected one table or more, all with the same algorithms in the same order"
        )
    if draws is not None:
        check_draws([table.cases for table in tables], draws)
    seeds: dict[tuple[str, ...], int] = {}
    ranked = []
    for table in tables:
        number = seeds.setdefault(table.cases, len(seeds))
        table_settings = replace(settings, seed=nth_seed(settings.seed, number))
        ranked.append(
            rank_table(table, table_settings, draws, composite if len(tables) == 1 else None)
        )
    n_draws = len(draws.rows) if draws else settings.n_resamples
    overall = combine(ranked, settings) if len(ranked) > 1 else None
    return Ranking(tuple(ranked), overall, settings, n_draws)


def nth_seed(seed: int, place: int) -> int:
    """Return the seed of the n-th different set of cases; the first has `seed` itself."""
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0]) if place else seed


def rank_table(
    table: RankingTable,
    settings: RankSettings,
    draws: NamedDraws | None = None,
    composite: Composite | None = None,
) -> TableRanking:
    """Return the ranking of one table.

    Parameters
    ----------
    table
        The values of the algorithms.
    settings
        Methods and rules.
    draws
        Resamples by name; None draws them with the settings' seed.
    composite
        Computes the challenge's own score from weights of the table's cases.

    Raises
    ------
    ValueError
        If values are missing without a rule, or a resample holds none of the table's cases.
    """
    merits = fill_missing(table, settings)
    scorer = Scorer(merits, settings, _keep_cases(composite, merits, len(table.cases)))
    methods = methods_for(settings.methods, composite)
    ones = np.ones((1, len(merits.values)), dtype=np.int64)
    scores = [scorer.score(method, ones)[0] for method in methods]
    blocks: list[list[NDArray[np.float64]]] = [[] for _ in methods]
    moments = _start_moments(merits, scorer, settings)
    n_done = 0
    for weights in weights_of(table.cases, merits.kept, settings, draws, table.name):
        for held, method in zip(blocks, methods, strict=True):
            report_progress(n_done, settings.n_resamples, f"Resampling, {method.value}")
            held.append(scorer.rank(scorer.score(method, weights)))
        for moment in moments.values():
            moment.take(weights)
        n_done += len(weights)
    ranked = []
    for method, merit, held in zip(methods, scores, blocks, strict=True):
        ranks = scorer.rank(merit)
        stable = stability_of(ranks, np.concatenate(held)) if held else None
        covering = moments[method].intervals() if held and method in moments else None
        ranked.append(
            MethodRanking(method, scorer.as_shown(method, merit), ranks, stable, covering)
        )
    counted = set(merits.kept.tolist())
    return TableRanking(
        table,
        tuple(table.cases[case_index] for case_index in merits.kept),
        tuple(case for index, case in enumerate(table.cases) if index not in counted),
        merits.filled,
        scorer.case_ranks,
        tuple(ranked),
        _test_pairs(merits),
        find_lead_changes(table, merits, scorer.case_ranks, ranked),
    )


def combine(ranked: Sequence[TableRanking], settings: RankSettings) -> OverallRanking:
    """Return the overall ranking of all tables; see `OverallRanking`."""
    shares = site_shares([table.table.site for table in ranked])
    methods = []
    for index, first in enumerate(ranked[0].methods):
        methods_of = [one.methods[index] for one in ranked]
        means = np.einsum("t,tm->m", shares, np.stack([method.ranks for method in methods_of]))
        ranks = rank_scores(-means, settings.ties, is_exact=settings.is_exact)
        drawn = [method.stability.ranks for method in methods_of if method.stability is not None]
        stable = None
        if len(drawn) == len(methods_of):
            mean_ranks = sum(
                share * table_ranks for share, table_ranks in zip(shares, drawn, strict=True)
            )
            stable = stability_of(
                ranks, rank_scores(-mean_ranks, settings.ties, is_exact=settings.is_exact)
            )
        methods.append(MethodRanking(first.method, means, ranks, stable))
    filled = np.sum([table.filled for table in ranked], axis=0)
    return OverallRanking(ranked[0].table.algorithms, tuple(methods), filled)


def site_shares(sites: Sequence[str]) -> NDArray[np.float64]:
    """Return the weight of each table so that sites count equally; the weights sum to 1.

    Examples
    --------
    >>> site_shares(["A", "B", "B"]).tolist()
    [0.5, 0.25, 0.25]
    """
    return np.array([1 / len(set(sites)) / list(sites).count(site) for site in sites])


def find_lead_changes(
    table: RankingTable,
    merits: Merits,
    case_ranks: NDArray[np.float64],
    ranked: Sequence[MethodRanking],
) -> tuple[LeadChange, ...]:
    """Return the fewest cases on which the lead depends, for the methods that rank means.

    Empty if several algorithms lead, or no other can draw level.

    Parameters
    ----------
    table
        The table.
    merits
        The table ready for ranking.
    case_ranks
        Ranks in each case, (n, m).
    ranked
        The algorithms by each method.
    """
    of_method = {RankMethod.MEAN: merits.values, RankMethod.RANK_MEAN: -case_ranks}
    changes = []
    for method in ranked:
        values = of_method.get(method.method)
        leaders = np.flatnonzero(method.ranks == method.ranks.min())
        if values is None or leaders.size > 1 or len(method.ranks) < 2:
            continue
        leader = int(leaders[0])
        best: tuple[int, NDArray[np.intp]] | None = None
        for other in range(len(method.ranks)):
            cases = _cases_ahead(values[:, leader], values[:, other], merits.is_exact)
            if (
                other != leader
                and cases is not None
                and (best is None or cases.size < len(best[1]))
            ):
                best = other, cases
        if best is not None:
            names = tuple(table.cases[merits.kept[index]] for index in best[1])
            pair = table.algorithms[leader], table.algorithms[best[0]]
            changes.append(LeadChange(method.method, *pair, names))
    return tuple(changes)


def _cases_ahead(
    leader: NDArray[np.float64], other: NDArray[np.float64], is_exact: bool
) -> NDArray[np.intp] | None:
    """Return the fewest cases whose removal makes the sums equal, or None if there are none."""
    with np.errstate(invalid="ignore"):
        apart = np.where(leader == other, 0.0, leader - other)
    order = np.argsort(-apart, kind="stable")
    # The sum of the remaining cases after each removal.
    remaining = np.cumsum(apart[order][::-1])[::-1]
    remaining = comparable(np.append(remaining[1:], 0.0), is_exact)
    places = np.flatnonzero(remaining[:-1] <= 0)
    return order[: places[0] + 1] if places.size else None


def _keep_cases(composite: Composite | None, merits: Merits, n_cases: int) -> Composite | None:
    """Return the composite as a function of weights of the kept cases; others have weight 0."""
    if composite is None or merits.kept.size == n_cases:
        return composite

    def of_kept(weights: Weights) -> NDArray[np.float64]:
        full = np.zeros((len(weights), n_cases), dtype=np.int64)
        full[:, merits.kept] = weights
        return composite(full)

    return of_kept


def _start_moments(
    merits: Merits, scorer: Scorer, settings: RankSettings
) -> dict[RankMethod, PairMoments]:
    """Return the accumulators of the covering intervals, for the methods that rank means."""
    if not settings.covering or settings.resampling is RankResampling.CHALLENGER:
        return {}
    values = {RankMethod.RANK_MEAN: -scorer.case_ranks}
    if can_cover(merits):
        values[RankMethod.MEAN] = merits.values
    return {
        method: PairMoments(rows)
        for method, rows in values.items()
        if method in settings.methods and len(rows) > 1
    }


def _test_pairs(merits: Merits) -> NDArray[np.float64]:
    """Return the p-values of all ordered pairs, with Holm's correction."""
    ones = np.ones((1, len(merits.values)), dtype=np.int64)
    p_values = better_p_values(merits, ones)[0]
    corrected: NDArray[np.float64] = holm(p_values.ravel()).reshape(p_values.shape)
    return corrected
