"""Qt table model of the scored cases, with the selected rows in order."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from qtpy.QtGui import QColor

from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.core.texts import tr
from napari_mamamia.metrics.registry import MetricSpec, Place, metrics_at
from napari_mamamia.scoring.report.text import name_status
from napari_mamamia.services.score.case_table import WORST_FIRST, CaseTable, Selection
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR, TINTS

_UNKNOWN: Final = "–"
_LEAST_WIDTH: Final = 56
_TITLE_MARGIN: Final = 30
_LETTER_WIDTH: Final = 5.5
POOR_DICE: Final = 0.5
"""Dice below which a result is poor, because fewer voxels are shared than differ (our choice)."""
GOOD_DICE: Final = 0.7
"""Dice from which a result is good (Zijdenbos et al., IEEE Trans. Med. Imaging 13, 1994)."""
_CAUTION: Final = (ScoreStatus.REFERENCE_EMPTY, ScoreStatus.BOTH_EMPTY)

Cell = tuple[CaseTable, int]
"""A table and the index of one of its rows."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with title and unit, description, sort key, value and number of digits."""

    title: str
    tip: str
    sort: str
    value: Callable[[Cell], Any]
    width: int
    digits: int = 0
    is_number: bool = False


def _make_score_reader(field: str, divisor: float = 1.0) -> Callable[[Cell], float]:
    def value(cell: Cell) -> float:
        return float(getattr(cell[0].rows[cell[1]], field)) / divisor

    return value


_TINTED: Final = {
    "dsc": tr(
        ". Vermilion below {poor_dice}, orange below {good_dice}",
        poor_dice=POOR_DICE,
        good_dice=GOOD_DICE,
    )
}


def _metric_column(spec: MetricSpec) -> _Column:
    way = spec.in_tables
    title = f"{spec.heading} [{way.unit}]" if way.unit else spec.heading
    tip = spec.meaning[:1].upper() + spec.meaning[1:] + _TINTED.get(spec.name, "")
    width = max(_LEAST_WIDTH, round(_TITLE_MARGIN + _LETTER_WIDTH * len(title)))
    value = _make_score_reader(spec.name, way.divisor)
    return _Column(title, tip, spec.name, value, width, way.decimals, is_number=True)


def _list_kinds(cell: Cell) -> str:
    return ", ".join(failure.kind.value for failure in cell[0].failures[cell[1]])


def _find_reason(cell: Cell) -> str:
    row = cell[0].rows[cell[1]]
    return row.reason or row.warning


_METRICS: Final = tuple(metrics_at(Place.CASES))
_N_FIRST: Final = 2
"""Number of metrics before the failures, which a narrow table should not hide."""
_COLUMNS: Final = (
    _Column("case", tr("Name of the case."), "case", lambda c: c[0].rows[c[1]].case_id, 104),
    _Column(
        "status",
        tr("Whether the case was scored without a problem."),
        "status",
        lambda c: name_status(c[0].rows[c[1]]),
        112,
    ),
    *(_metric_column(spec) for spec in _METRICS[:_N_FIRST]),
    _Column(
        "failure",
        tr("Types of failure, determined from the two masks."),
        "failure",
        _list_kinds,
        150,
    ),
    *(_metric_column(spec) for spec in _METRICS[_N_FIRST:]),
    _Column(
        tr("tags"),
        tr("Readers' tags; right-click a row to add or remove them."),
        "tag",
        lambda c: ", ".join(c[0].tags[c[1]]),
        90,
    ),
    _Column(
        tr("reason or warning"),
        tr("Why a case was not scored, or what is unusual about it."),
        "reason",
        _find_reason,
        100,
    ),
)
_STATUS, _DICE, _NEEDS_LOOK, _REASON = (
    [column.sort for column in _COLUMNS].index(key)
    for key in ("status", "dsc", "failure", "reason")
)

LEGEND: Final = (
    ("problem", tr("Dice below {poor_dice}, or not scored", poor_dice=POOR_DICE)),
    ("caution", tr("Dice below {good_dice}, or a warning", good_dice=GOOD_DICE)),
)
"""Meaning of each cell colour, by the names of `TINTS`."""

COLUMN_WIDTHS: Final = tuple(column.width for column in _COLUMNS)
"""Width of each column in pixels."""


class ResultsModel(QAbstractTableModel):
    """One read-only row for each selected case.

    The signal `sort_wanted` carries the sort key ("" for worst first) and whether to sort
    ascending.
    """

    sort_wanted = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self._table: CaseTable | None = None
        self._shown: Selection | None = None

    @property
    def table(self) -> CaseTable | None:
        """The table of the shown rows."""
        return self._table

    def show_rows(self, table: CaseTable | None, shown: Selection | None) -> None:
        """Show the selected rows of a table."""
        self.beginResetModel()
        self._table, self._shown = table, shown
        self.endResetModel()

    def show_order(self, table: CaseTable, shown: Selection) -> None:
        """Show other rows, or the same rows in another order; reset only if the count differs."""
        if self._shown is None or len(shown) != len(self._shown):
            self.show_rows(table, shown)
            return
        self.layoutAboutToBeChanged.emit()
        self._table, self._shown = table, shown
        self.layoutChanged.emit()

    def case_id(self, place: int) -> str:
        """Return the id of the case at a position."""
        table, row = self._find_cell(place)
        return table.rows[row].case_id

    def tags_at(self, place: int) -> tuple[str, ...]:
        """Return the tags of the case at a position."""
        table, row = self._find_cell(place)
        return table.tags[row]

    def case_ids(self) -> list[str]:
        """Return the ids of the shown cases, in order."""
        if self._table is None or self._shown is None:
            return []
        rows = self._table.rows
        return [rows[row].case_id for row in self._shown.rows]

    def case_keys(self) -> list[str]:
        """Return the keys of the shown cases, which ignore upper and lower case."""
        if self._table is None or self._shown is None:
            return []
        return self._shown.pick(self._table.keys)

    def place_of(self, key: str) -> int | None:
        """Return the position of the case with a key, or None if it is not shown."""
        if self._table is None or self._shown is None or key not in self._table.keys:
            return None
        return self._shown.place_of(self._table.keys.index(key))

    # ------------------------------------------------------------------- for Qt

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of shown cases."""
        nothing = self._shown is None or (parent is not None and parent.isValid())
        return 0 if nothing or self._shown is None else len(self._shown)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_COLUMNS)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Request another order; column -1 sorts the worst cases first."""
        key = _COLUMNS[column].sort if 0 <= column < len(_COLUMNS) else WORST_FIRST
        self.sort_wanted.emit(key, order == Qt.SortOrder.AscendingOrder)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip, colour or alignment."""
        if role == Qt.ItemDataRole.DisplayRole:
            return self._describe_cell(index)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._make_tip(index)
        if role == Qt.ItemDataRole.BackgroundRole:
            table, row = self._find_cell(index.row())
            return _choose_tint(index.column(), table.rows[row])
        if role == Qt.ItemDataRole.ForegroundRole and self._describe_cell(index) == _UNKNOWN:
            return QColor(QUIET_COLOUR)
        if role == Qt.ItemDataRole.TextAlignmentRole and _COLUMNS[index.column()].is_number:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title with its unit, or its description."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(_COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section].title
        return _COLUMNS[section].tip if role == Qt.ItemDataRole.ToolTipRole else None

    # -------------------------------------------------------------------- inner

    def _find_cell(self, place: int) -> Cell:
        if self._table is None or self._shown is None:
            raise IndexError(tr("expected a case at position {place}, but found none", place=place))
        return self._table, self._shown.row_at(place)

    def _describe_cell(self, index: QModelIndex) -> str:
        column, cell = _COLUMNS[index.column()], self._find_cell(index.row())
        if index.column() == _NEEDS_LOOK and not cell[0].knows_failures:
            return _UNKNOWN
        return _format_value(column.value(cell), column.digits)

    def _make_tip(self, index: QModelIndex) -> str:
        table, row = self._find_cell(index.row())
        lines = [f"{_COLUMNS[index.column()].tip}: {self._describe_cell(index)}"]
        if index.column() == _NEEDS_LOOK:
            lines += [f"{failure.kind.value}: {failure.reason}" for failure in table.failures[row]]
            if not table.knows_failures:
                lines = [tr("The types of failure have not been determined yet.")]
        return "\n".join([*lines, _find_reason((table, row))]).strip()


def _format_value(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:,.{digits}f}" if math.isfinite(value) else _UNKNOWN
    return str(value)


def _choose_tint(column: int, row: CaseScore) -> QColor | None:
    kind = ""
    if column == _DICE:
        kind = dice_kind(row.dsc)
    elif column == _STATUS and row.status is not ScoreStatus.OK:
        kind = "caution" if row.status in _CAUTION else "problem"
    elif column == _REASON and row.warning:
        kind = "caution"
    return QColor(TINTS[kind]) if kind else None


def dice_kind(dice: float) -> str:
    """Return the colour name for a Dice, or "" for a good or unknown value.

    Examples
    --------
    >>> [dice_kind(dice) for dice in (0.0, 0.49, 0.5, 0.69, 0.7, 1.0, float("nan"))]
    ['problem', 'problem', 'caution', 'caution', '', '', '']
    """
    if dice < POOR_DICE:
        return "problem"
    return "caution" if dice < GOOD_DICE else ""
