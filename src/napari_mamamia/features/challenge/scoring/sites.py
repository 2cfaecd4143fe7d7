"""Rank algorithms over equally weighted sites, also with each site omitted in turn.

Source: FeTS, Zenk et al., Nature Communications 16 (2025) 6274, and FeTS-AI/Challenge, commit
1c122653 (reimplemented from its behaviour, without copied code).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import MissingKind, RankTies, SiteRule
from napari_mamamia.scoring.ranking.methods import rank_cases, rank_scores
from napari_mamamia.scoring.ranking.ranking import site_shares
from napari_mamamia.scoring.ranking.table import (
    MissingRule,
    RankingTable,
    RankSettings,
    fill_missing,
)

SMALL_SITE: Final = 10
"""Sites with fewer cases are listed in a note (our choice)."""

_WORST_DICE: Final = 0.0
_WORST_DISTANCE: Final = 1000.0
"""Value that replaces a missing distance in `SiteRule.FETS_2022_R`."""

_LAST: Final = MissingRule(MissingKind.WORST_RANK)


@dataclass(frozen=True, slots=True, eq=False)
class SiteRanks:
    """Mean ranks (m,) and final ranks (m,) by a named rule."""

    rule: str
    mean_ranks: NDArray[np.float64]
    ranks: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SiteMeans:
    """Means of a metric at k sites: `means` (k, m), NaN where an algorithm was not run.

    `n` (k, m) is the number of cases with a value; `worst` (m,) the index of each algorithm's worst
    site, -1 for none; `spread` (m,) is the algorithm's largest mean minus its smallest mean.
    """

    task: str
    metric: str
    sites: tuple[str, ...]
    means: NDArray[np.float64]
    n: NDArray[np.int64]
    worst: NDArray[np.int64]
    spread: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SitesResult:
    """All results of a ranking over sites.

    `left_out` holds the ranks by ``fets-2022`` when each site in turn is omitted; () if there is
    only one site. `small` lists the sites with fewer than `SMALL_SITE` cases.
    """

    algorithms: tuple[str, ...]
    sites: tuple[str, ...]
    small: tuple[str, ...]
    rules: tuple[SiteRanks, ...]
    means: tuple[SiteMeans, ...]
    left_out: tuple[tuple[str, SiteRanks], ...]


def rank_sites(tables: Sequence[RankingTable], rule: SiteRule = SiteRule.FETS_2022) -> SiteRanks:
    """Rank algorithms over sites; there is one table for each site and metric (and task).

    A missing value ranks last in its case; ``fets-2022-R`` replaces it with 0 (1000 if smaller is
    better).

    Parameters
    ----------
    tables
        Tables of the same algorithms, one for each site and metric.
    rule
        The published rule.
    """
    of_tables = [_mean_case_ranks(table, rule) for table in tables]
    if rule is SiteRule.BRATS:
        sizes = np.array([len(table.cases) for table in tables], dtype=np.float64)
        means = np.einsum("t,tm->m", sizes / sizes.sum(), np.stack(of_tables))
    else:
        if rule is not SiteRule.FETS_2021_PAGE:
            of_tables = [rank_scores(-table) for table in of_tables]
        shares = site_shares([table.site for table in tables])
        means = np.einsum("t,tm->m", shares, np.stack(of_tables))
    ties = RankTies.AVERAGE if rule is SiteRule.FETS_2022_R else RankTies.MIN
    return SiteRanks(rule.value, means, rank_scores(-means, ties))


def describe_sites(tables: Sequence[RankingTable], smallest: int = 0) -> SitesResult | None:
    """Return ranks by every rule, the means of each site, and the ranks when a site is omitted.

    Sites with fewer than `smallest` cases are excluded from the ranks, but not from the means. The
    result is None if no table names a site, or no site is large enough.
    """
    sites = tuple(dict.fromkeys(table.site for table in tables))
    sizes = {
        site: len({case for table in tables if table.site == site for case in table.cases})
        for site in sites
    }
    counted = [table for table in tables if sizes[table.site] >= smallest]
    if not any(sites) or not counted:
        return None
    site_names = tuple(dict.fromkeys(table.site for table in counted))
    without = [
        (site, [kept_table for kept_table in counted if kept_table.site != site])
        for site in site_names
    ]
    return SitesResult(
        tables[0].algorithms,
        sites,
        tuple(site for site in sites if sizes[site] < SMALL_SITE),
        tuple(rank_sites(counted, rule) for rule in SiteRule),
        _list_means(tables),
        tuple((site, rank_sites(rest)) for site, rest in without if rest),
    )


def _mean_case_ranks(table: RankingTable, rule: SiteRule) -> NDArray[np.float64]:
    missing = _LAST
    if rule is SiteRule.FETS_2022_R:
        worst = _WORST_DICE if table.is_larger_better else _WORST_DISTANCE
        missing = MissingRule(MissingKind.VALUE, worst)
    settings = RankSettings(missing=missing)
    means: NDArray[np.float64] = rank_cases(fill_missing(table, settings), settings).mean(axis=0)
    return means


def _list_means(tables: Sequence[RankingTable]) -> tuple[SiteMeans, ...]:
    """Return the means at each site, for each task and metric."""
    keys = dict.fromkeys((table.task, table.metric) for table in tables)
    all_means = []
    for task, metric in keys:
        of_metric = [table for table in tables if (table.task, table.metric) == (task, metric)]
        n = np.stack([len(table.cases) - table.n_missing for table in of_metric])
        sums = np.stack([np.nansum(table.values, axis=0) for table in of_metric])
        means = np.full(sums.shape, np.nan)
        np.divide(sums, n, out=means, where=n > 0)
        sign = 1.0 if of_metric[0].is_larger_better else -1.0
        merits = np.where(np.isnan(means), np.inf, sign * means)
        has_any = n.any(axis=0)
        worst = np.where(has_any, merits.argmin(axis=0), -1)
        high = np.fmax.reduce(means, axis=0)
        spread = high - np.fmin.reduce(means, axis=0)
        sites = tuple(table.site for table in of_metric)
        all_means.append(SiteMeans(task, metric, sites, means, n, worst, spread))
    return tuple(all_means)
