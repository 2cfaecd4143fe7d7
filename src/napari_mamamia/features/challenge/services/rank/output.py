"""Content of a ranking's files: ``rank.json``, ``rank_details.json``, and CSV tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.features.challenge.scoring.sites import SitesResult
from napari_mamamia.features.challenge.services.rank.inputs import ReadInputs
from napari_mamamia.io.data_set.rank_files import RANK_FILE
from napari_mamamia.scoring.ranking.ranking import (
    PARITY_REASON,
    MethodRanking,
    OverallRanking,
    Ranking,
    Stability,
    TableRanking,
)
from napari_mamamia.scoring.ranking.table import RankSettings

Content = dict[str, Any]
Numbers = NDArray[Any]

DETAILS_FILE: Final = "rank_details.json"
RANKS_FILE: Final = "ranks.csv"
CASES_FILE: Final = "case_ranks.csv"
VALUES_FILE: Final = "case_values.csv"
DATA_FILES: Final = (RANK_FILE, DETAILS_FILE, RANKS_FILE, CASES_FILE, VALUES_FILE)


@dataclass(frozen=True, slots=True, eq=False)
class RankSummary:
    """The results of a ranking: for each table, overall, over sites, and notes."""

    ranking: Ranking
    overall: OverallRanking | None
    sites: SitesResult | None
    notes: tuple[str, ...]
    folder: Path


def rank_content(
    ranking: Ranking, read: ReadInputs, sites: SitesResult | None, overall: OverallRanking | None
) -> Content:
    """Return the content of ``rank.json``: one table, or a list of them and the overall ranking.

    Parameters
    ----------
    ranking
        The ranking.
    read
        The inputs of the ranking.
    sites, overall
        Results over sites and over all tables; None if there is only one site or table.
    """
    with_draws = read.draws is not None
    if not read.keys:
        return _table_content(ranking.tables[0], with_draws)
    tables = [
        {**_keys_of(table, read.keys), **_table_content(table, with_draws)}
        for table in ranking.tables
    ]
    together: Content = {}
    if overall is not None:
        names = overall.algorithms
        together = {
            **methods_content(names, overall.methods, with_draws),
            "filled": _by_name(names, overall.filled),
        }
    if sites is not None:
        together |= _sites_content(sites)
    return {"tables": tables, "overall": together}


def details_content(
    ranking: Ranking, read: ReadInputs, sites: SitesResult | None, notes: Sequence[str]
) -> Content:
    """Return the content of ``rank_details.json``: settings, and the data of the figures.

    Parameters
    ----------
    ranking
        The ranking.
    read
        The inputs of the ranking.
    sites
        Results over sites, or None.
    notes
        Notes for the reader.
    """
    return {
        "settings": _settings_content(ranking.settings, ranking.n_draws),
        "notes": list(notes),
        "tables": [
            {
                **_keys_of(table, ("task", "metric", "site")),
                "larger_is_better": table.table.is_larger_better,
                "n_cases": len(table.cases),
                "dropped_cases": table.dropped,
                "missing": _by_name(table.table.algorithms, table.table.n_missing),
                "distribution": {
                    method.method.value: _share_ranks(table.table.algorithms, method.stability)
                    for method in table.methods
                    if method.stability is not None
                },
                "covering_rank_interval": {
                    method.method.value: {
                        "each": _by_name(table.table.algorithms, method.covering.marginal),
                        "all_at_once": _by_name(
                            table.table.algorithms, method.covering.simultaneous
                        ),
                    }
                    for method in table.methods
                    if method.covering is not None
                },
                "lead_changes": table.lead_changes,
            }
            for table in ranking.tables
        ],
        "site_means": [] if sites is None else sites.means,
    }


def rank_rows(ranking: Ranking, overall: OverallRanking | None) -> Iterator[list[str | float]]:
    """Yield the lines of ``ranks.csv``, beginning with the header; each method has a column."""
    methods = ranking.tables[0].methods
    heads = ["task", "metric", "site", "algorithm", "n_cases", "n_filled"]
    for method in methods:
        name = method.method.value
        heads += [f"{name} {heading}" for heading in ("rank", "score", "first", "low", "high")]
    yield list(heads)
    for table in ranking.tables:
        keys = [table.table.task, table.table.metric, table.table.site]
        for index, name in enumerate(table.table.algorithms):
            counts: list[str | float] = [len(table.cases), int(table.filled[index])]
            yield [*keys, name, *counts, *_cells_of(table.methods, index)]
    if overall is not None:
        n = len({(table.table.site, case) for table in ranking.tables for case in table.cases})
        for row, name in enumerate(overall.algorithms):
            counts = [n, int(overall.filled[row])]
            yield ["overall", "", "", name, *counts, *_cells_of(overall.methods, row)]


def case_rows(tables: Iterable[TableRanking]) -> Iterator[list[str | float]]:
    """Yield the lines of ``case_ranks.csv``: one row per case, one rank per algorithm."""
    for table in tables:
        keys = [table.table.task, table.table.metric, table.table.site]
        for case, ranks in zip(table.cases, table.case_ranks.tolist(), strict=True):
            yield [*keys, case, *ranks]


def value_rows(tables: Iterable[TableRanking]) -> Iterator[list[str | float]]:
    """Yield the lines of ``case_values.csv``: one row per case, one value per algorithm.

    A value that was assigned by a rule is NaN, which is written as an empty cell.
    """
    for ranked in tables:
        table = ranked.table
        keys = [table.task, table.metric, table.site]
        own_values = np.where(table.stand_ins, np.nan, table.values)
        for case, values in zip(table.cases, own_values.tolist(), strict=True):
            yield [*keys, case, *values]


def _cells_of(methods: Sequence[MethodRanking], at: int) -> list[str | float]:
    cells: list[str | float] = []
    for method in methods:
        cells += [float(method.ranks[at]), float(method.scores[at])]
        stable = method.stability
        parts = (stable.first, stable.low, stable.high) if stable else ()
        cells += [float(numbers[at]) for numbers in parts] or [np.nan] * 3
    return cells


def _table_content(one: TableRanking, with_draws: bool) -> Content:
    names = one.table.algorithms
    return {
        **methods_content(names, one.methods, with_draws),
        "significance": _by_pair(names, one.significance),
        "filled": _by_name(names, one.filled),
    }


def methods_content(
    names: Sequence[str], methods: Sequence[MethodRanking], with_draws: bool = False
) -> Content:
    """Return ranks, scores and stability by method and algorithm name, for ``rank.json``.

    Parameters
    ----------
    names
        Names of the algorithms.
    methods
        The algorithms by each method.
    with_draws
        Whether to include the ranks of each resample.
    """
    content: Content = {
        "methods": {method.method.value: _by_name(names, method.ranks) for method in methods},
        "scores": {method.method.value: _by_name(names, method.scores) for method in methods},
        "stability": {
            method.method.value: _stability_content(names, method.stability)
            for method in methods
            if method.stability is not None
        },
    }
    if with_draws:
        content["draws"] = {
            method.method.value: [_by_name(names, row) for row in method.stability.ranks]
            for method in methods
            if method.stability is not None
        }
    return content


def _stability_content(names: Sequence[str], stable: Stability) -> Content:
    return {
        "kendall_tau_b": stable.kendall,
        "rank_interval": _by_name(names, np.stack([stable.low, stable.high], axis=1)),
        "first": _by_name(names, stable.first),
        "wins": _by_pair(names, stable.wins),
    }


def _share_ranks(names: Sequence[str], stable: Stability) -> Content:
    """Return the median rank of each algorithm, and how often it has each rank in resamples."""
    content = {}
    for index, name in enumerate(names):
        ranks, counts = np.unique(stable.ranks[:, index], return_counts=True)
        shares = {
            f"{rank:g}": count / len(stable.ranks)
            for rank, count in zip(ranks.tolist(), counts.tolist(), strict=True)
        }
        content[name] = {"median": float(stable.median[index]), "shares": shares}
    return content


def _sites_content(sites: SitesResult) -> Content:
    names = sites.algorithms
    return {
        "site_rules": {rule.rule: _by_name(names, rule.ranks) for rule in sites.rules},
        "site_rule_scores": {rule.rule: _by_name(names, rule.mean_ranks) for rule in sites.rules},
        "leave_one_site_out": {
            site: _by_name(names, ranks.ranks) for site, ranks in sites.left_out
        },
        "worst_site": [
            {
                **_key_texts(mean.task, mean.metric),
                "site": {
                    name: mean.sites[index] if index >= 0 else None
                    for name, index in zip(names, mean.worst.tolist(), strict=True)
                },
                "spread": _by_name(names, mean.spread),
            }
            for mean in sites.means
        ],
        "small_sites": sites.small,
    }


def _settings_content(settings: RankSettings, n_draws: int) -> Content:
    is_parity = settings.resampling.value != "cases"
    return {
        "ties": settings.ties,
        "missing": settings.missing.text if settings.missing else None,
        "rounding": "none" if settings.is_exact else "10 decimals",
        "correction": settings.correction,
        "alpha": settings.alpha,
        "resamples": n_draws,
        "seed": settings.seed,
        "resampling": settings.resampling,
        **({"resampling_reason": PARITY_REASON} if is_parity else {}),
    }


def _keys_of(one: TableRanking, keys: Sequence[str]) -> Content:
    return {key: getattr(one.table, key) for key in keys}


def _key_texts(task: str, metric: str) -> Content:
    return {key: text for key, text in (("task", task), ("metric", metric)) if text}


def _by_name(names: Sequence[str], values: Numbers) -> Content:
    return dict(zip(names, values.tolist(), strict=True))


def _by_pair(names: Sequence[str], values: Numbers) -> Content:
    """Return a matrix as values by row name and column name, without the diagonal."""
    return {
        name: {other: value for other, value in zip(names, row, strict=True) if other != name}
        for name, row in zip(names, values.tolist(), strict=True)
    }
