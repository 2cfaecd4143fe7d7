"""Rank tables by every method, with stability under resampling and possible lead changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import RankMethod, RankResampling
from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.cohort.comparison import holm
from napari_mamamia.scoring.ranking.methods import (
    Composite,
    Scorer,
    Weights,
    methods_for,
    rank_scores,
)
from napari_mamamia.scoring.ranking.signed_rank import better_p_values
from napari_mamamia.scoring.ranking.table import (
    Merits,
    RankingTable,
    RankSettings,
    comparable,
    fill_missing,
)
from napari_mamamia.scoring.statistics.resampling import count_in_rows, draw_cases

LEVEL: Final = 0.95
_VALUES_AT_ONCE: Final = 1 << 22
_DRAWS_AT_ONCE: Final = 1 << 21
PARITY_REASON = (
    "challengeR 1.0.5 gives the copies of a drawn case the same name. Therefore "
    "rank-then-aggregate ranks the copies together (the weight of a case that is drawn k times is "
    "k squared, and ranks exceed the number of algorithms), and test-then-rank tests each case "
    "once. Use this option only to reproduce figures of challengeR"
)
"""Explanation why challengeR's resampling is available but is not the default."""


@dataclass(frozen=True, slots=True)
class TauSummary:
    """Quartiles (type 7) of Kendall's tau-b between resampled and full ranks; nan if undefined.

    `undefined` is the number of resamples in which all ranks are equal, so that tau is undefined.
    """

    median: float
    q25: float
    q75: float
    undefined: int


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """The ranks of m algorithms in B resamples, summarised.

    `ranks` (B, m) are the ranks, and `tau` (B,) is Kendall's tau-b, or nan if undefined. `low`,
    `high` and `median` (m,) are the 2.5, 97.5 and 50 % quantiles (type 7) of the ranks. `first`
    (m,) is the fraction of resamples in which the algorithm is first, including ties, so the
    fractions can add up to more than 1. `wins` (m, m) is the fraction in which the row has a better
    rank than the column, with nan on the diagonal.
    """

    ranks: NDArray[np.float64]
    tau: NDArray[np.float64]
    kendall: TauSummary
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    median: NDArray[np.float64]
    first: NDArray[np.float64]
    wins: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CoveringIntervals:
    """Rank intervals (m, 2) that asymptotically contain the true rank with at least the level.

    `marginal` applies to each algorithm separately, and `simultaneous` to all algorithms at once.
    Source: M. Mogstad, J. P. Romano, A. M. Shaikh, D. Wilhelm, Review of Economic Studies 91 (2024)
    476.
    """

    marginal: NDArray[np.float64]
    simultaneous: NDArray[np.float64]


def stability_of(full: NDArray[np.float64], ranks: NDArray[np.float64]) -> Stability:
    """Return the stability of the full ranks (m,), given the resampled ranks (B, m).

    Parameters
    ----------
    full
        The ranks (m,) from all cases.
    ranks
        Ranks in each resample, (B, m).
    """
    tau = kendall_tau_b(full, ranks)
    low, median, high = np.quantile(ranks, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], axis=0)
    is_first = ranks == ranks.min(axis=1, keepdims=True)
    wins = np.stack([(row[:, None] < ranks).mean(axis=0) for row in ranks.T])
    np.fill_diagonal(wins, np.nan)
    return Stability(ranks, tau, summarise_tau(tau), low, high, median, is_first.mean(axis=0), wins)


def summarise_tau(tau: NDArray[np.float64]) -> TauSummary:
    """Return the quartiles of tau where it is defined, and the number of undefined values."""
    defined = tau[~np.isnan(tau)]
    undefined = tau.size - defined.size
    if not defined.size:
        return TauSummary(np.nan, np.nan, np.nan, undefined)
    q25, median, q75 = np.quantile(defined, [0.25, 0.5, 0.75])
    return TauSummary(float(median), float(q25), float(q75), undefined)


def kendall_tau_b(full: NDArray[np.float64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return tau-b between each row of ranks (B, m) and the full ranks (m,); nan if all are equal.

    Parameters
    ----------
    full
        The ranks (m,) from all cases.
    ranks
        Ranks in each resample, (B, m).

    Examples
    --------
    >>> kendall_tau_b(np.array([1.0, 2, 3]), np.array([[1.0, 2, 3], [1, 3, 2], [1, 1, 1]])).tolist()
    [1.0, 0.3333333333333333, nan]
    """
    a, b = np.triu_indices(len(full), 1)
    order = np.sign(full[a] - full[b])
    n_full = np.count_nonzero(order)
    taus = np.full(len(ranks), np.nan)
    step = max(1, _VALUES_AT_ONCE // max(1, a.size))
    for first in range(0, len(ranks), step):
        rows = slice(first, first + step)
        signs = np.sign(ranks[rows, a] - ranks[rows, b])
        pairs = np.count_nonzero(signs, axis=1).astype(np.float64) * n_full
        np.divide(signs @ order, np.sqrt(pairs), out=taus[rows], where=pairs > 0)
    return taus


class PairMoments:
    """An accumulator, filled block by block, for covering rank intervals of means.

    The means of `values` (n, m), where larger is better, are ranked.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        n = len(values)
        self.values = values
        self.apart = _mean_gaps(values.mean(axis=0))
        self.error = _pair_errors(values, np.ones((1, n), dtype=np.int64))[0]
        self._largest: list[NDArray[np.float64]] = []

    def take(self, weights: Weights) -> None:
        """Add resamples (b, n), and keep the largest studentised distance from the full data."""
        means = weights @ self.values / weights.sum(axis=1, keepdims=True)
        step = max(1, _VALUES_AT_ONCE // self.values.shape[1] ** 2)
        for first in range(0, len(weights), step):
            rows = slice(first, first + step)
            errors = _pair_errors(self.values, weights[rows])
            off = np.abs(means[rows, :, None] - means[rows, None, :] - self.apart)
            shares = np.zeros_like(off)
            np.divide(off, errors, out=shares, where=errors > 0)
            self._largest.append(shares.max(axis=2))

    def intervals(self, level: float = LEVEL) -> CoveringIntervals:
        """Return the rank intervals, based on which algorithms are significantly better."""
        largest = np.concatenate(self._largest)
        each = np.quantile(largest, level, axis=0, method="higher")
        joint = np.quantile(largest.max(axis=1), level, method="higher")
        return CoveringIntervals(
            self._bound_ranks(each), self._bound_ranks(np.full(each.shape, joint))
        )

    def _bound_ranks(self, critical: NDArray[np.float64]) -> NDArray[np.float64]:
        reach = critical[:, None] * self.error
        is_worse, is_better = self.apart < -reach, self.apart > reach
        m = len(critical)
        return np.stack([1 + is_worse.sum(axis=1), m - is_better.sum(axis=1)], axis=1).astype(
            np.float64
        )


def _mean_gaps(means: NDArray[np.float64]) -> NDArray[np.float64]:
    gaps: NDArray[np.float64] = means[:, None] - means[None, :]
    return np.where(np.abs(gaps) < 1e-10, 0.0, gaps)


def _pair_errors(values: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    totals = weights.sum(axis=1)[:, None, None].astype(np.float64)
    m = values.shape[1]
    centred = values - values.mean(axis=0)
    first = (weights @ centred) / totals[:, :, 0]
    second = np.zeros((len(weights), m * m))
    step = max(1, _VALUES_AT_ONCE // (m * m))
    for start in range(0, len(values), step):
        block = centred[start : start + step]
        products = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        second += weights[:, start : start + step] @ products
    second = second.reshape(-1, m, m) / totals
    covariance = second - first[:, :, None] * first[:, None, :]
    spread = np.diagonal(covariance, axis1=1, axis2=2)
    variance = spread[:, :, None] + spread[:, None, :] - 2 * covariance
    errors = np.sqrt(np.maximum(variance, 0) / np.maximum(totals - 1, 1))
    return np.where(errors < 1e-10, 0.0, errors)


def can_cover(merits: Merits) -> bool:
    """Return whether covering intervals are possible, which need two cases and no value of -inf."""
    return len(merits.values) > 1 and not bool(np.isneginf(merits.values).any())


@dataclass(frozen=True, slots=True)
class NamedDraws:
    """Resamples defined by case names, one resample per row; a repeated name repeats the case."""

    rows: tuple[tuple[str, ...], ...]


def seeded_weights(n_cases: int, n_resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the number of draws of each case in each seeded resample, in blocks (b, n).

    Resample k is row k of `numpy.random.default_rng(seed).integers(0, n, (n_resamples, n))`.

    Parameters
    ----------
    n_cases, n_resamples
        Number of cases and of resamples.
    seed
        Seed of the resamples.
    """
    held: list[NDArray[np.int64]] = []
    rows = max(1, _DRAWS_AT_ONCE // n_cases)
    for drawn in draw_cases(n_cases, n_resamples, seed):
        held.append(count_in_rows(drawn, n_cases))
        if sum(map(len, held)) >= rows:
            yield np.concatenate(held)
            held.clear()
    if held:
        yield np.concatenate(held)


def named_weights(
    cases: Sequence[str], draws: NamedDraws, where: str = ""
) -> Iterator[NDArray[np.int64]]:
    """Yield the counts of each case in named resamples; names from other tables are ignored.

    Parameters
    ----------
    cases
        Names of the table's cases.
    draws
        The resamples.
    where
        Name of the table, for messages.

    Raises
    ------
    ValueError
        If a resample contains none of the cases.
    """
    places = {case: index for index, case in enumerate(cases)}
    step = max(1, _DRAWS_AT_ONCE // len(cases))
    for first in range(0, len(draws.rows), step):
        block = draws.rows[first : first + step]
        weights = np.zeros((len(block), len(cases)), dtype=np.int64)
        for row, names in enumerate(block):
            inside = [places[name] for name in names if name in places]
            if not inside:
                raise ValueError(
                    f"expected at least one case of {where or 'the table'} in each resample, but "
                    f"found none in row {first + row + 1}; draw within each site"
                )
            np.add.at(weights[row], inside, 1)
        yield weights


def check_draws(tables: Sequence[Sequence[str]], draws: NamedDraws) -> None:
    """Raise ValueError if there is no resample, or if one names an unknown case.

    Parameters
    ----------
    tables
        Names of the cases of each table.
    draws
        The resamples.
    """
    if not draws.rows:
        raise ValueError(
            "the file of resamples has no rows; write one resample per row, or use a seed"
        )
    all_cases = {case for cases in tables for case in cases}
    for number, row in enumerate(draws.rows, 1):
        if not row:
            raise ValueError(f"expected case names in row {number}, but found none")
        for name in row:
            if name not in all_cases:
                raise ValueError(
                    f"row {number} of the resamples names case {name!r}, which is not in any "
                    "table; correct the name or, if this row is a header, remove it"
                )


def weights_of(
    cases: Sequence[str],
    kept: NDArray[np.intp],
    settings: RankSettings,
    draws: NamedDraws | None = None,
    where: str = "",
) -> Iterator[NDArray[np.int64]]:
    """Return the resamples of a table's kept cases, if there are any, as blocks of weights.

    The errors are those of `named_weights`, and are raised during iteration.

    Parameters
    ----------
    cases
        Names of the table's cases.
    kept
        Indices of the cases that count.
    settings
        Number of resamples and seed.
    draws
        Resamples by name; by default they are drawn with the seed.
    where
        Name of the table, for messages.
    """
    names = [cases[index] for index in kept]
    if draws is not None:
        return named_weights(names, draws, where)
    if not settings.n_resamples:
        return iter(())
    return seeded_weights(len(names), settings.n_resamples, settings.seed)


@dataclass(frozen=True, slots=True, eq=False)
class MethodRanking:
    """The ranking of m algorithms by one method.

    `scores` (m,) are in their usual form, or nan for an algorithm without a score, which is ranked
    last. `ranks` (m,) start at 1 for the best. `stability` is None without resamples, and
    `covering` is None unless requested and possible.
    """

    method: RankMethod
    scores: NDArray[np.float64]
    ranks: NDArray[np.float64]
    stability: Stability | None = None
    covering: CoveringIntervals | None = None


@dataclass(frozen=True, slots=True)
class LeadChange:
    """The smallest set of cases whose removal makes another algorithm equal to the leader.

    The removed cases are those in which the leader is furthest ahead.
    """

    method: RankMethod
    leader: str
    challenger: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TableRanking:
    """The ranking of one table.

    `cases` are the cases that counted, `dropped` the cases that the rule for missing values left
    out, and `filled` (m,) the numbers of values that this rule filled in. `case_ranks` (n, m) are
    the ranks in each case. `significance` (m, m) is the p-value of "row better than column",
    corrected by Holm over all ordered pairs, with nan on the diagonal.
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
        """Return the values (n, m) of the cases that counted, with nan for missing values."""
        if not self.dropped:
            return self.table.values
        return self.table.values[np.isin(self.table.cases, self.cases)]

    def by(self, method: RankMethod) -> MethodRanking:
        """Return the result of one method."""
        return next(ranked for ranked in self.methods if ranked.method is method)


@dataclass(frozen=True, slots=True, eq=False)
class OverallRanking:
    """Ranking over all tables by each method, from averaged ranks that are ranked again.

    Tables of one site are averaged first, so that each site counts equally. The scores are these
    mean ranks, and `filled` (m,) is the sum over the tables.
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

    `composite` is the composite score of a single table. Without `draws`, tables with the same
    cases share their resamples.

    Parameters
    ----------
    tables
        Tables of the same algorithms.
    settings
        Methods and rules.
    draws
        Resamples by name; by default they are drawn with the settings' seed.
    composite
        The challenge's score of a single table.

    Raises
    ------
    ValueError
        If the algorithms differ, and as in `rank_table`.
    """
    if len({table.algorithms for table in tables}) != 1:
        raise ValueError(
            "expected at least one table, all with the same algorithms in the same order"
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
    """Return the seed for the n-th different set of cases; the first set uses `seed` itself."""
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
        Resamples by name; by default they are drawn with the settings' seed.
    composite
        Function that computes the challenge's score from weights of the table's cases.

    Raises
    ------
    ValueError
        If values are missing without a rule, or a resample contains none of the table's cases.
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
    """Return the overall ranking of all tables (see `OverallRanking`)."""
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
    """Return the weight of each table so that all sites have equal weight; the sum is 1.

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
    """Return the smallest sets of cases on which the lead depends, for methods that rank means.

    The result is empty if several algorithms lead, or if no other algorithm can become equal.

    Parameters
    ----------
    table
        The table.
    merits
        The table prepared for ranking.
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
    with np.errstate(invalid="ignore"):
        apart = np.where(leader == other, 0.0, leader - other)
    order = np.argsort(-apart, kind="stable")
    # This is the sum over the remaining cases after each removal.
    remaining = np.cumsum(apart[order][::-1])[::-1]
    remaining = comparable(np.append(remaining[1:], 0.0), is_exact)
    places = np.flatnonzero(remaining[:-1] <= 0)
    return order[: places[0] + 1] if places.size else None


def _keep_cases(composite: Composite | None, merits: Merits, n_cases: int) -> Composite | None:
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
    ones = np.ones((1, len(merits.values)), dtype=np.int64)
    p_values = better_p_values(merits, ones)[0]
    corrected: NDArray[np.float64] = holm(p_values.ravel()).reshape(p_values.shape)
    return corrected
