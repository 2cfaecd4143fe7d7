"""Resamples of a table's cases, drawn with a seed or read from case names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.ranking.table import RankSettings
from napari_mamamia.scoring.statistics.resampling import count_in_rows, draw_cases

_PLACES: Final = 1 << 21


@dataclass(frozen=True, slots=True)
class NamedDraws:
    """Resamples defined by case names, one per row; repeated names count repeatedly."""

    rows: tuple[tuple[str, ...], ...]


def seeded_weights(n_cases: int, n_resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield how often each case counts in seeded resamples, in blocks (b, n).

    Resample k is row k of `numpy.random.default_rng(seed).integers(0, n, (n_resamples, n))`.

    Parameters
    ----------
    n_cases, n_resamples
        Number of cases and of resamples.
    seed
        Seed of the resamples.
    """
    held: list[NDArray[np.int64]] = []
    rows = max(1, _PLACES // n_cases)
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
    """Yield how often each case counts in named resamples; names of other tables are ignored.

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
        If a resample holds none of the cases.
    """
    places = {case: index for index, case in enumerate(cases)}
    step = max(1, _PLACES // len(cases))
    for first in range(0, len(draws.rows), step):
        block = draws.rows[first : first + step]
        weights = np.zeros((len(block), len(cases)), dtype=np.int64)
        for row, names in enumerate(block):
            inside = [places[name] for name in names if name in places]
            if not inside:
                raise ValueError(
                    f"expected cases of {where or 'the table'} in each resample, but found none "
                    f"in row {first + row + 1}; draw within each site"
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
            "expected a resample in each row, but found no row; write some rows, or use a seed"
        )
    all_cases = {case for cases in tables for case in cases}
    for number, row in enumerate(draws.rows, 1):
        if not row:
            raise ValueError(f"expected the names of cases in row {number}, but found none")
        for name in row:
            if name not in all_cases:
                raise ValueError(
                    f"the resamples name the case {name!r} in row {number}, which is in no table; "
                    "correct the name; the file has no header"
                )


def weights_of(
    cases: Sequence[str],
    kept: NDArray[np.intp],
    settings: RankSettings,
    draws: NamedDraws | None = None,
    where: str = "",
) -> Iterator[NDArray[np.int64]]:
    """Return the resamples of a table's kept cases as weights, in blocks; none without resamples.

    Errors as `named_weights`, raised during iteration.

    Parameters
    ----------
    cases
        Names of the table's cases.
    kept
        Indices of the cases that count.
    settings
        Number of resamples and seed.
    draws
        Resamples by name; None draws them with the seed.
    where
        Name of the table, for messages.
    """
    names = [cases[index] for index in kept]
    if draws is not None:
        return named_weights(names, draws, where)
    if not settings.n_resamples:
        return iter(())
    return seeded_weights(len(names), settings.n_resamples, settings.seed)
