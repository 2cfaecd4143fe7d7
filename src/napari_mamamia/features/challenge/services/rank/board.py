"""Read a ranking for display: the leader, the teams by method, and the cases by team."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.features.challenge.io.leaderboard_file import (
    BOARD_FILE,
    Leaderboard,
    read_leaderboard,
)
from napari_mamamia.features.challenge.services.rank.output import (
    CASES_FILE,
    DETAILS_FILE,
    VALUES_FILE,
)
from napari_mamamia.io.data_set.rank_files import (
    RANK_FILE,
    CaseNumbers,
    RankDetails,
    RankedAlgorithm,
    RankedMethod,
    RankedTable,
    read_case_numbers,
    read_rank_details,
    read_rank_file,
)
from napari_mamamia.scoring.ranking.table import comparable
from napari_mamamia.scoring.report.certainty import few_cases

_CLEAR: Final = 0.95
_LIKELY: Final = 0.75
"""Minimum fraction of resamples with the same leader for the lead to be called likely."""
_LARGE: Final = 10.0
_OVERALL: Final = "All tables together"
_MASKS: Final = "segmentation"
COMPOSITE: Final = "composite"
LADDER: Final = "ladder"
OWN_SCORE: Final = "challenge"
"""Name of the challenge's own ranking method, which is added to those of `rank`."""

T = TypeVar("T")


class CaseOrder(StrEnum):
    """The criterion by which cases are sorted; a team's name is possible too."""

    LISTED = "as listed"
    SPREAD = "largest spread first"
    WORST = "worst value first"


@dataclass(frozen=True, slots=True, eq=False)
class CaseGrid:
    """A value for each case and team, (n, m) float64, NaN if missing.

    If `are_ranks`, the file of values is missing, and the numbers are ranks in each case. `worst`
    and `spread` (n,) are computed over the teams that have a value. If a team has no value for a
    case, `worst` is NaN, which sorts before any number. `badness` (n, m) ranges from the best value
    of the table (0) to the worst (1).
    """

    teams: tuple[str, ...]
    cases: tuple[str, ...]
    values: NDArray[np.float64]
    is_larger_better: bool
    are_ranks: bool
    worst: NDArray[np.float64]
    spread: NDArray[np.float64]
    badness: NDArray[np.float64]

    @property
    def digits(self) -> int:
        """Return the number of decimals: 0 for ranks, 1 for mm, 3 for values from 0 to 1."""
        if self.are_ranks:
            return 0
        return 1 if np.nanmax(np.abs(self.values), initial=0.0) >= _LARGE else 3


@dataclass(frozen=True, slots=True, eq=False)
class BoardTable:
    """One table of a ranking; `n_cases` is None if it is unknown.

    `leads` names the method shown first; for a challenge, this is the leaderboard's method. `grid`
    is None if there are no cases to show, and `why_no_grid` explains why.
    """

    title: str
    methods: tuple[RankedMethod, ...]
    filled: Mapping[str, int]
    n_cases: int | None = None
    grid: CaseGrid | None = None
    why_no_grid: str = ""
    leads: str = COMPOSITE


@dataclass(frozen=True, slots=True, eq=False)
class RankBoard:
    """A ranking: its notes and its tables, with the overall table first if there are several."""

    folder: Path
    tables: tuple[BoardTable, ...]
    rule: str = ""
    notes: tuple[str, ...] = ()


def open_board(path: Path) -> RankBoard:
    """Read the ranking in a folder (or its ``rank.json``).

    Other files may be damaged or missing, which is reported in a note.

    Raises
    ------
    FormatError
        If there is no ranking, or it cannot be read.
    """
    folder = path.parent if path.name == RANK_FILE else path
    if not (folder / RANK_FILE).is_file():
        raise FormatError(
            f"expected a ranking in {folder}, but found no {RANK_FILE}: choose the output folder "
            "of a ranking or of a challenge's leaderboard"
        )
    ranks = read_rank_file(folder / RANK_FILE)
    notes: list[str] = []
    details = _read_beside(read_rank_details, folder / DETAILS_FILE, RankDetails(), notes)
    none: tuple[CaseNumbers, ...] = ()
    numbers = _read_beside(read_case_numbers, folder / VALUES_FILE, none, notes)
    are_ranks = not numbers
    if are_ranks:
        numbers = _read_beside(read_case_numbers, folder / CASES_FILE, none, notes)
    tables = [
        _make_table(table, ranks.tables, details, numbers, are_ranks) for table in ranks.tables
    ]
    board_file = folder / BOARD_FILE
    official = _read_beside(lambda path: read_leaderboard(path.parent), board_file, None, notes)
    if official is not None and len(tables) == 1:
        tables = [_lead_with_challenge(tables[0], official, notes)]
    if ranks.overall is not None:
        title = f"{_OVERALL} ({len(tables)})"
        why = "Choose one table above to see its cases."
        overall = BoardTable(title, ranks.overall.methods, ranks.overall.filled, why_no_grid=why)
        tables.insert(0, overall)
    return RankBoard(folder, tuple(tables), details.missing, (*details.notes, *notes))


def _lead_with_challenge(table: BoardTable, official: Leaderboard, notes: list[str]) -> BoardTable:
    """Put the challenge leaderboard's method for masks first in a table.

    If no method of the table gives the leaderboard's ranks (because of the ladder), these ranks are
    added as a method.
    """
    board = next((board for board in official.boards if board.task == _MASKS), None)
    if board is None:
        return table
    rows = {row.team: row for row in board.rows}
    names = [algorithm.name for algorithm in table.methods[0].algorithms]
    without_rank = [row.team for row in board.rows if row.rank is None and row.team not in names]
    if without_rank:
        notes.append(f"Not ranked: {', '.join(without_rank)}.")
    teams = tuple(
        RankedAlgorithm(name, _as_number(rows[name].rank), _as_number(rows[name].score))
        if name in rows
        else RankedAlgorithm(name, math.nan)
        for name in names
    )
    ranks = [team.rank for team in teams]
    same = [
        method.name
        for method in table.methods
        if [algorithm.rank for algorithm in method.algorithms] == ranks and not official.ladder
    ]
    if same:
        return replace(table, leads=COMPOSITE if COMPOSITE in same else same[0])
    if official.ladder:
        notes.append("A team's score is kept until a later attempt is clearly better.")
    leads = LADDER if official.ladder else OWN_SCORE
    return replace(table, methods=(RankedMethod(leads, teams), *table.methods), leads=leads)


def _as_number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def list_ranked(table: BoardTable, method: int) -> tuple[RankedAlgorithm, ...]:
    """Return the teams ranked by a method, best first; teams without a rank come last.

    Parameters
    ----------
    table
        A table of the ranking.
    method
        Index of the method.
    """
    return tuple(
        sorted(
            table.methods[method].algorithms,
            key=lambda algorithm: (math.isnan(algorithm.rank), algorithm.rank, algorithm.name),
        )
    )


def say_lead(table: BoardTable, method: int) -> str:
    """Describe the leader by a method, and the certainty of the lead, in one sentence.

    Parameters
    ----------
    table
        A table of the ranking.
    method
        Index of the method.
    """
    teams = list_ranked(table, method)
    by = f"by {table.methods[method].name}"
    if len(teams) == 1:
        return f"{teams[0].name} is the only team: there is no comparison."
    leaders = [team for team in teams if team.rank == teams[0].rank]
    if not leaders:
        return f"No team has a rank {by}."
    if len(leaders) == len(teams):
        return f"All {len(teams)} teams share a rank {by}: no team leads."
    if len(leaders) > 1:
        return f"{_join_names(leaders)} share the first rank {by}."
    leader, rival = leaders[0], max(teams[1:], key=lambda team: _read_share(team.first))
    if math.isnan(leader.first):
        if table.methods[method].name in (LADDER, OWN_SCORE):
            return (
                f"{leader.name} leads {by}. For the certainty of the lead, see the other methods."
            )
        return f"{leader.name} leads {by}. The certainty was not computed (no resamples)."
    few = "" if table.n_cases is None else few_cases(table.n_cases)
    how = "clearly" if leader.first >= _CLEAR else "probably" if leader.first >= _LIKELY else ""
    how = "" if few else how
    text = f"{leader.name} {how + ' ' if how else ''}leads {by}"
    text += f": first in {_format_percent(leader.first)} of the resamples of the cases"
    if rival.first > 0:
        text += f", {rival.name} in {_format_percent(rival.first)}"
    text = f"{text}." if how else f"{text}. The lead is uncertain"
    return text if how else f"{text}: {few}." if few else f"{text}."


def order_cases(grid: CaseGrid, by: str, *, upwards: bool = False) -> tuple[int, ...]:
    """Return the indices of the cases, sorted by a `CaseOrder` or by a team's values.

    The widest spread or the worst value comes first. Cases for which a team has no value come
    first; equal values are sorted by the mean over the teams. `upwards` reverses the order.

    Parameters
    ----------
    grid
        Values by case and team.
    by
        A `CaseOrder`, or the name of a team.
    upwards
        Whether to reverse the order.
    """
    n = len(grid.cases)
    if by == CaseOrder.LISTED:
        order = np.arange(n)
    elif by == CaseOrder.SPREAD:
        order = np.argsort(
            -_fill_gaps(comparable(grid.spread, is_exact=False), -1.0), kind="stable"
        )
    else:
        bad = comparable(_fill_gaps(grid.badness, 2.0), is_exact=False)
        worst = bad[:, grid.teams.index(by)] if by in grid.teams else bad.max(axis=1)
        order = np.lexsort((np.arange(n), -bad.mean(axis=1), -worst))
    return tuple(int(index) for index in (order[::-1] if upwards else order))


class _Keyed(Protocol):
    @property
    def key(self) -> tuple[str, str, str]: ...


_K = TypeVar("_K", bound=_Keyed)


def _read_beside(read: Callable[[Path], T], path: Path, nothing: T, notes: list[str]) -> T:
    """Read a file next to ``rank.json``; if it is unreadable, add a note and return `nothing`."""
    if not path.is_file():
        return nothing
    try:
        return read(path)
    except MamamiaError as error:
        notes.append(str(error))
        return nothing


def _make_table(
    one: RankedTable,
    tables: Sequence[RankedTable],
    details: RankDetails,
    numbers: Sequence[CaseNumbers],
    are_ranks: bool,
) -> BoardTable:
    terms = _find_part(details.tables, one, tables)
    cells = _find_part(numbers, one, tables)
    columns = terms or cells
    task, metric, site = columns.key if columns is not None else one.key
    before = " ".join(word for word in (task, metric) if word)
    title = f"{before} at {site}".strip() if site else before or "all cases"
    table = BoardTable(title, one.methods, one.filled)
    if cells is not None:
        teams = {team.name for team in one.methods[0].algorithms}
        if teams == set(cells.algorithms):
            is_larger_better = not are_ranks and (terms is None or terms.is_larger_better)
            grid = _make_grid(cells, is_larger_better, are_ranks)
            return replace(table, n_cases=len(cells.cases), grid=grid)
        why = f"The case table has different teams from {RANK_FILE}: rank again."
    else:
        why = f"Neither {VALUES_FILE} nor {CASES_FILE} can be read: rank again to see cases."
    n_cases = terms.n_cases if terms is not None and terms.n_cases >= 0 else None
    return replace(table, n_cases=n_cases, why_no_grid=why)


def _find_part(parts: Sequence[_K], one: RankedTable, tables: Sequence[RankedTable]) -> _K | None:
    """Return the key in `parts` that matches a table; a single table matches a single key."""
    if len(tables) == 1:
        return parts[0] if len(parts) == 1 else None
    return next((candidate for candidate in parts if candidate.key == one.key), None)


def _make_grid(numbers: CaseNumbers, is_larger_better: bool, are_ranks: bool) -> CaseGrid:
    values = numbers.values
    merits = values if is_larger_better else -values
    there = ~np.isnan(values)
    low = np.where(there, merits, np.inf).min(axis=1)
    high = np.where(there, merits, -np.inf).max(axis=1)
    is_whole, has_any = there.all(axis=1), there.any(axis=1)
    sign = 1.0 if is_larger_better else -1.0
    worst = np.where(is_whole, sign * np.where(has_any, low, 0.0), np.nan)
    spread = np.where(has_any, np.where(has_any, high, 0.0) - np.where(has_any, low, 0.0), np.nan)
    best, least = high[has_any].max(initial=-np.inf), low[has_any].min(initial=np.inf)
    width = best - least if best > least else 1.0
    badness = (best - merits) / width
    return CaseGrid(
        numbers.algorithms,
        numbers.cases,
        values,
        is_larger_better,
        are_ranks,
        worst,
        spread,
        badness,
    )


def _fill_gaps(values: NDArray[np.float64], filler: float) -> NDArray[np.float64]:
    return np.where(np.isnan(values), filler, values)


def _read_share(share: float) -> float:
    return -1.0 if math.isnan(share) else share


def _format_percent(share: float) -> str:
    """Format a fraction in percent; only exact values appear as 0 % or 100 %.

    Examples
    --------
    >>> [_format_percent(share) for share in (0.0, 0.004, 0.5, 0.996, 1.0)]
    ['0 %', 'under 1 %', '50 %', 'over 99 %', '100 %']
    """
    if 0 < share < 0.005:
        return "under 1 %"
    return "over 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _join_names(teams: Sequence[RankedAlgorithm]) -> str:
    names = [team.name for team in teams]
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
