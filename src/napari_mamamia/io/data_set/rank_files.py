"""Read the files of a ranking: ranks by method, and a value for each case and algorithm.

``rank.json`` contains the ranks, ``rank_details.json`` the settings, and ``case_values.csv`` and
``case_ranks.csv`` one number per case and algorithm.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.text_rows import read_own_rows

RANK_FILE: Final = "rank.json"

_REMEDY: Final = (
    "rank again with `mamamia rank` or `mamamia challenge rank`; if a newer version wrote the "
    "file, open it with that version"
)
_KEYS: Final = ("task", "metric", "site", "case")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RankedAlgorithm:
    """The result of an algorithm under one ranking method; unknown numbers are NaN.

    `low` and `high` are the ends of its rank interval in 95 % of the resamples. `first` is the
    fraction of resamples in which the algorithm is first.
    """

    name: str
    rank: float
    score: float = math.nan
    low: float = math.nan
    high: float = math.nan
    first: float = math.nan


@dataclass(frozen=True, slots=True)
class RankedMethod:
    """A ranking method's name and its algorithms in file order."""

    name: str
    algorithms: tuple[RankedAlgorithm, ...]


@dataclass(frozen=True, slots=True)
class RankedTable:
    """A table ranked by every method.

    `filled` counts, for each algorithm, the values that a rule filled in. `task`, `metric` and
    `site` are "" if there is only one.
    """

    methods: tuple[RankedMethod, ...]
    filled: Mapping[str, int]
    task: str = ""
    metric: str = ""
    site: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, metric and site."""
        return self.task, self.metric, self.site


@dataclass(frozen=True, slots=True)
class RankFile:
    """The content of ``rank.json``; `overall` combines all tables (None for a single table)."""

    tables: tuple[RankedTable, ...]
    overall: RankedTable | None


@dataclass(frozen=True, slots=True)
class TableDetails:
    """Details of a table: the better direction, and the number of cases (-1 if unknown)."""

    task: str
    metric: str
    site: str
    is_larger_better: bool
    n_cases: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, metric and site, which are always set."""
        return self.task, self.metric, self.site


@dataclass(frozen=True, slots=True)
class RankDetails:
    """The settings of a ranking.

    `missing` is the rule for missing values as typed by the user, or ""; `notes` are shown to the
    user.
    """

    tables: tuple[TableDetails, ...] = ()
    missing: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CaseNumbers:
    """A number for each case and algorithm, (n, m) float64, with NaN for empty cells."""

    task: str
    metric: str
    site: str
    algorithms: tuple[str, ...]
    cases: tuple[str, ...]
    values: NDArray[np.float64]

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, metric and site, which are always set."""
        return self.task, self.metric, self.site


def is_ranking(path: Path) -> bool:
    """Return whether a path is the folder of a ranking, or its ``rank.json``."""
    return path.name == RANK_FILE if path.is_file() else (path / RANK_FILE).is_file()


@reads("a ranking (rank.json)", _REMEDY)
def read_rank_file(path: Path) -> RankFile:
    """Return the content of ``rank.json``; unknown keys and methods are ignored.

    Raises
    ------
    FormatError
        If the file cannot be read, or has no ranks.
    """
    content = _as_kind(read_json(path), dict, "an object")
    if "tables" not in content:
        return RankFile((_read_table(content),), None)
    tables = tuple(
        _read_table(_as_kind(one, dict, "an object for each table"))
        for one in _as_kind(content["tables"], list, "a list of tables")
    )
    if not tables:
        raise ValueError("the file contains no table")
    overall = _as_kind(content.get("overall") or {}, dict, "an object for all tables together")
    return RankFile(tables, _read_table(overall) if overall.get("methods") else None)


@reads("the details of a ranking (rank_details.json)", _REMEDY)
def read_rank_details(path: Path) -> RankDetails:
    """Return those contents of ``rank_details.json`` that are needed to show a table of ranks.

    Raises
    ------
    FormatError
        If the file cannot be read or has unexpected content.
    """
    content = _as_kind(read_json(path), dict, "an object")
    settings = _as_kind(content.get("settings") or {}, dict, "an object with settings")
    tables = _as_kind(content.get("tables") or [], list, "a list of tables")
    return RankDetails(
        tuple(_read_details(_as_kind(table, dict, "an object for each table")) for table in tables),
        str(settings.get("missing") or ""),
        tuple(str(one) for one in _as_kind(content.get("notes") or [], list, "a list of notes")),
    )


@reads("a table of cases and algorithms", _REMEDY)
def read_case_numbers(path: Path) -> tuple[CaseNumbers, ...]:
    """Return the tables in ``case_values.csv`` or ``case_ranks.csv``, one for each key.

    Raises
    ------
    FormatError
        If the file cannot be read, a column is missing or occurs twice, or a cell is not a number.
    """
    lines = read_own_rows(path)
    header = [str(cell) for cell in lines[0]] if lines else []
    names = header[len(_KEYS) :]
    if tuple(header[: len(_KEYS)]) != _KEYS or not names:
        raise ValueError(f"the first row does not consist of {', '.join(_KEYS)} and the algorithms")
    if len(set(names)) < len(names):
        raise ValueError("an algorithm has two columns")
    parts: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise ValueError(
                f"row {number} has {len(line)} cells, but the first row has {len(header)}"
            )
        task, metric, site, case = map(str, line[: len(_KEYS)])
        cases = parts.setdefault((task, metric, site), {})
        if case in cases:
            raise ValueError(f"{case} occurs twice, the second time in row {number}")
        cases[case] = [_parse_cell(str(cell), number) for cell in line[len(_KEYS) :]]
    return tuple(
        CaseNumbers(*key, tuple(names), tuple(cases), np.array(list(cases.values())))
        for key, cases in parts.items()
    )


def _parse_cell(cell: str, row: int) -> float:
    if not cell:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"row {row} contains {cell[:40]!r} instead of a number") from None
    if math.isinf(value):
        raise ValueError(f"row {row} contains an infinite number")
    return value


def _read_details(content: Mapping[str, Any]) -> TableDetails:
    n_cases = content.get("n_cases")
    task, metric, site = (str(content.get(key) or "") for key in ("task", "metric", "site"))
    return TableDetails(
        task,
        metric,
        site,
        content.get("larger_is_better") is not False,
        n_cases if isinstance(n_cases, int) else -1,
    )


def _read_table(content: Mapping[str, Any]) -> RankedTable:
    methods = _as_kind(content.get("methods"), dict, "an object with methods")
    if not methods:
        raise ValueError("the file contains no method")
    scores, stability = (
        _as_kind(content.get(name) or {}, dict, f"an object {name}")
        for name in ("scores", "stability")
    )
    counts = _as_kind(content.get("filled") or {}, dict, "an object 'filled'")
    return RankedTable(
        tuple(
            RankedMethod(
                name, tuple(_read_algorithms(ranks, scores.get(name), stability.get(name)))
            )
            for name, ranks in methods.items()
        ),
        {name: int(_read_number(count)) for name, count in counts.items() if count is not None},
        *(str(content.get(key) or "") for key in ("task", "metric", "site")),
    )


def _read_algorithms(ranks: object, scores: object, stability: object) -> Iterator[RankedAlgorithm]:
    by_name = _as_kind(ranks, dict, "a rank for each algorithm")
    if not by_name:
        raise ValueError("a method contains no algorithm")
    by_score = _as_kind(scores or {}, dict, "a score for each algorithm")
    stable = _as_kind(stability or {}, dict, "an object 'stability'")
    intervals = _as_kind(stable.get("rank_interval") or {}, dict, "an interval for each algorithm")
    firsts = _as_kind(stable.get("first") or {}, dict, "a fraction for each algorithm")
    for name, rank in by_name.items():
        ends = intervals.get(name) or (None, None)
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise ValueError(f"the rank interval of {name[:40]} does not have two ends")
        numbers = (by_score.get(name), *ends, firsts.get(name))
        yield RankedAlgorithm(name, _read_number(rank), *map(_read_number, numbers))


def _read_number(value: object) -> float:
    """Return a number, or NaN for null.

    Raises
    ------
    ValueError
        If the value is neither a number nor null, or is infinite.
    """
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        raise ValueError(f"the file contains {str(value)[:40]!r} instead of a number")
    return float(value)


def _as_kind(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"the file does not contain {what}")
    return value
