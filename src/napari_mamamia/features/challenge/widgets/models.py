"""Qt models of the two leaderboard tables: teams by a method, and cases by team."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from qtpy.QtGui import QBrush, QColor

from napari_mamamia.core.texts import tr
from napari_mamamia.features.challenge.services.rank import board
from napari_mamamia.io.data_set.rank_files import RankedAlgorithm
from napari_mamamia.widgets.controls.colours import AGREEMENT_COLOURS, QUIET_COLOUR

UNKNOWN: Final = "–"
BAD_COLOUR: Final = AGREEMENT_COLOURS["false"]
"""Background colour of the worst value in a table; better values are paler."""
_MOST_OPAQUE: Final = 0.5
_STEPS: Final = 10
_NUMBERS: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team ranked by the selected method, with its values in the table."""

    team: RankedAlgorithm
    n_cases: int | None
    n_filled: int | None


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its title, tooltip, cell text, and width in pixels with napari's default font."""

    title: str
    tip: str
    text: Callable[[TeamRow], str]
    width: int
    is_number: bool = True


_COLUMNS: Final = (
    _Column(
        "rank", tr("Rank by the chosen method; 1 is best"), lambda r: _as_text(r.team.rank), 38
    ),
    _Column(
        "team", tr("Name of the team or algorithm"), lambda r: r.team.name, 140, is_number=False
    ),
    _Column(
        tr("95 % ranks"),
        tr("The range of the rank in 95 % of the resamples of the cases"),
        lambda r: _show_interval(r.team),
        86,
    ),
    _Column(
        "first",
        tr("Share of the resamples in which this team is first"),
        lambda r: UNKNOWN if math.isnan(r.team.first) else f"{100 * r.team.first:.0f} %",
        48,
    ),
    _Column(
        "score",
        tr("The number by which the teams are ranked"),
        lambda r: _as_text(r.team.score, 4),
        56,
    ),
    _Column("n", tr("Cases that count for this rank"), lambda r: _show_count(r.n_cases), 50),
    _Column(
        "filled",
        tr("Cases for which this team has no usable answer, scored by the rule for missing values"),
        lambda r: _show_count(r.n_filled),
        48,
    ),
)
_FILLED: Final = [column.title for column in _COLUMNS].index("filled")
TEAM_WIDTHS: Final = tuple(column.width for column in _COLUMNS)
"""Width, in pixels, of each column of the teams table."""


class TeamsModel(QAbstractTableModel):
    """Read-only model with one row per team, best first."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[TeamRow, ...] = ()

    def show_table(self, table: board.BoardTable | None, method: int = 0) -> None:
        """Show the teams of a table, ranked by one of the table's methods."""
        self.beginResetModel()
        self.rows = ()
        if table is not None:
            counts = table.filled
            self.rows = tuple(
                TeamRow(team, table.n_cases, counts.get(team.name))
                for team in board.list_ranked(table, method)
            )
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of teams."""
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_COLUMNS)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip, colour or alignment."""
        column, row = _COLUMNS[index.column()], self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.team.name}\n{column.tip}: {column.text(row)}"
        if role == Qt.ItemDataRole.TextAlignmentRole and column.is_number:
            return _NUMBERS
        if role == Qt.ItemDataRole.BackgroundRole and index.column() == _FILLED and row.n_filled:
            return _make_hatch()
        if role == Qt.ItemDataRole.ForegroundRole and column.text(row) == UNKNOWN:
            return QColor(QUIET_COLOUR)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title or tooltip."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(_COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section].title
        return _COLUMNS[section].tip if role == Qt.ItemDataRole.ToolTipRole else None


_BEFORE: Final = (
    (board.CaseOrder.SPREAD, "spread", tr("Largest minus smallest value of the teams in a case")),
    (board.CaseOrder.WORST, "worst", tr("Worst value of a team in a case; – if a team has none")),
)
"""The columns before the team columns: sort key, title, tooltip."""


class CasesModel(QAbstractTableModel):
    """Read-only model with one row per case and one column per team.

    The row headers are case ids. The signal `sort_wanted` carries a `CaseOrder` or a team's name,
    and whether to sort ascending.
    """

    sort_wanted = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self._grid: board.CaseGrid | None = None
        self._columns: tuple[int, ...] = ()
        self._order: tuple[int, ...] = ()
        self._rule = ""

    def show_grid(self, grid: board.CaseGrid | None, teams: Sequence[str], rule: str) -> None:
        """Show the cases and teams of a table; `rule` is the rule for missing values."""
        self.beginResetModel()
        self._grid, self._rule = grid, rule
        self._columns = () if grid is None else tuple(grid.teams.index(team) for team in teams)
        self._order = () if grid is None else tuple(range(len(grid.cases)))
        self.endResetModel()

    def show_order(self, order: Sequence[int]) -> None:
        """Show the same cases in a different order."""
        self.layoutAboutToBeChanged.emit()
        self._order = tuple(order)
        self.layoutChanged.emit()

    def case_ids(self) -> list[str]:
        """Return the case ids in their displayed order."""
        grid = self._grid
        return [] if grid is None else [grid.cases[row] for row in self._order]

    def find_cell(self, row: int, column: int) -> tuple[str, str]:
        """Return the case and the team of a cell; the team is "" if the column has no team."""
        case_id, index = self.case_ids()[row], column - len(_BEFORE)
        grid = self._grid
        return case_id, "" if index < 0 or grid is None else grid.teams[self._columns[index]]

    def column_of(self, team: str) -> int | None:
        """Return the column index of a team, or None."""
        names = [] if self._grid is None else [self._grid.teams[index] for index in self._columns]
        return names.index(team) + len(_BEFORE) if team in names else None

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of cases."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns, including those before the teams."""
        nothing = self._grid is None or (parent is not None and parent.isValid())
        return 0 if nothing else len(_BEFORE) + len(self._columns)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Request a different sort order; column -1 means the order in the file."""
        by: str = board.CaseOrder.LISTED
        if 0 <= column < len(_BEFORE):
            by = _BEFORE[column][0]
        elif self._grid is not None and column >= 0:
            by = self._grid.teams[self._columns[column - len(_BEFORE)]]
        # Qt sends "ascending" for the first click on a title; it should bring the worst case
        # first.
        self.sort_wanted.emit(by, order == Qt.SortOrder.DescendingOrder)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip, colour or alignment."""
        if self._grid is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._describe_value(self._grid, index)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _NUMBERS
        if role == Qt.ItemDataRole.BackgroundRole and index.column() >= len(_BEFORE):
            return self._choose_brush(self._grid, index)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._make_tip(self._grid, index)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a header's text or tooltip, for a case, a team or another column."""
        grid = self._grid
        if grid is None or role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        is_tip = role == Qt.ItemDataRole.ToolTipRole
        if orientation is Qt.Orientation.Vertical:
            return grid.cases[self._order[section]]
        if section < len(_BEFORE):
            _, title, tip = _BEFORE[section]
            return tr("{tip}; click to sort, largest first", tip=tip) if is_tip else title
        team = grid.teams[self._columns[section - len(_BEFORE)]]
        return (
            tr("{team}\nClick to sort, this team's worst case first", team=team) if is_tip else team
        )

    # -------------------------------------------------------------------- inner

    def _find_value(self, grid: board.CaseGrid, index: QModelIndex) -> float:
        row = self._order[index.row()]
        if index.column() < len(_BEFORE):
            by = _BEFORE[index.column()][0]
            return float((grid.spread if by is board.CaseOrder.SPREAD else grid.worst)[row])
        return float(grid.values[row, self._columns[index.column() - len(_BEFORE)]])

    def _describe_value(self, grid: board.CaseGrid, index: QModelIndex) -> str:
        return _as_text(self._find_value(grid, index), grid.digits)

    def _choose_brush(self, grid: board.CaseGrid, index: QModelIndex) -> QBrush | None:
        cell = self._order[index.row()], self._columns[index.column() - len(_BEFORE)]
        badness = float(grid.badness[cell])
        if math.isnan(badness):
            return _make_hatch()
        step = round(badness * _STEPS)
        return QBrush(_bad_colour(step / _STEPS)) if step else None

    def _make_tip(self, grid: board.CaseGrid, index: QModelIndex) -> str:
        case_id, team = self.find_cell(index.row(), index.column())
        value = self._describe_value(grid, index)
        if not team:
            return f"{case_id}, {_BEFORE[index.column()][1]}: {value}"
        if value == UNKNOWN:
            how = (
                tr(", scored as {rule}", rule=self._rule)
                if self._rule
                else tr(", scored by the rule")
            )
            value = tr("no usable answer{how}", how=how)
        elif grid.are_ranks:
            value = tr("rank {value} in this case", value=value)
        return tr(
            "{case_id}\n{team}: {value}\nClick or press Enter to open the case",
            case_id=case_id,
            team=team,
            value=value,
        )


def _bad_colour(badness: float) -> QColor:
    colour = QColor(BAD_COLOUR)
    colour.setAlphaF(_MOST_OPAQUE * badness)
    return colour


def _make_hatch() -> QBrush:
    return QBrush(QColor(BAD_COLOUR), Qt.BrushStyle.BDiagPattern)


def _as_text(value: float, digits: int = -1) -> str:
    if math.isnan(value):
        return UNKNOWN
    return f"{value:g}" if digits < 1 else f"{value:,.{digits}f}"


def _show_count(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _show_interval(team: RankedAlgorithm) -> str:
    """Return the smallest range of integer ranks that contains the interval.

    Examples
    --------
    >>> _show_interval(RankedAlgorithm("A", 2, low=1.05, high=2.0))
    '1 to 2'
    """
    if math.isnan(team.low) or math.isnan(team.high):
        return UNKNOWN
    return tr("{floor} to {ceil}", floor=math.floor(team.low), ceil=math.ceil(team.high))
