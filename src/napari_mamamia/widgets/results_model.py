"""The scored cases as a Qt model, worst first; sorted and filtered by a proxy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, QSortFilterProxyModel, Qt
from qtpy.QtGui import QColor

from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.widgets.colours import TINTS

__all__ = ["STATUS_TEXTS", "ResultsFilter", "ResultsModel", "worst_first"]

_UNKNOWN: Final = "–"
_SORT_ROLE: Final = Qt.ItemDataRole.UserRole
_MM3_PER_ML: Final = 1000.0

STATUS_TEXTS: Final = {
    ScoreStatus.OK: "ok",
    ScoreStatus.PREDICTION_MISSING: "no prediction",
    ScoreStatus.REFERENCE_MISSING: "no reference",
    ScoreStatus.PREDICTION_EMPTY: "prediction empty",
    ScoreStatus.REFERENCE_EMPTY: "reference empty",
    ScoreStatus.BOTH_EMPTY: "both empty",
    ScoreStatus.GRID_MISMATCH: "other grid",
    ScoreStatus.UNREADABLE: "unreadable",
}
"""What people read for each status."""

_CAUTION: Final = (ScoreStatus.REFERENCE_EMPTY, ScoreStatus.BOTH_EMPTY)


@dataclass(frozen=True, slots=True)
class _Column:
    """Title with unit, what it means, its value, and digits of a number."""

    title: str
    tip: str
    value: Callable[[CaseScore], Any]
    digits: int = 3


def _ml(volume_mm3: float) -> float:
    return volume_mm3 / _MM3_PER_ML


_COLUMNS: Final = (
    _Column("case", "Name of the case", lambda row: row.case_id),
    _Column("status", "Whether it was scored as it should", lambda row: STATUS_TEXTS[row.status]),
    _Column("Dice", "Twice the common volume over the sum of both; 1 is best", lambda row: row.dsc),
    _Column(
        "HD95 [mm]",
        "95th percentile of the distances between the two surfaces; 0 is best",
        lambda row: row.hausdorff95_mm,
        1,
    ),
    _Column(
        "NormHD", "Distance of the profile over its divisor; 0 is best", lambda row: row.norm_hd
    ),
    _Column(
        "NSD 1 mm",
        "Share of both surfaces within 1 mm of the other; 1 is best",
        lambda row: row.nsd_1mm,
    ),
    _Column(
        "reference [ml]",
        "Volume of the reference mask",
        lambda row: _ml(row.volume_reference_mm3),
        2,
    ),
    _Column(
        "prediction [ml]",
        "Volume of the prediction",
        lambda row: _ml(row.volume_prediction_mm3),
        2,
    ),
    _Column(
        "reason or warning",
        "Why a case was not scored as it should, or what is unusual about it",
        lambda row: row.reason or row.warning,
    ),
)
_NUMBERS: Final = range(2, 8)


def worst_first(rows: Sequence[CaseScore]) -> list[CaseScore]:
    """Return the cases without a Dice first, then by Dice upwards; of equal ones the farthest."""

    def badness(row: CaseScore) -> tuple[bool, float, float, str]:
        far = 0.0 if math.isnan(row.hausdorff95_mm) else -row.hausdorff95_mm
        known = not math.isnan(row.dsc)
        return (known, row.dsc if known else 0.0, far, row.case_id)

    return sorted(rows, key=badness)


class ResultsModel(QAbstractTableModel):
    """One row for each case, read only."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[CaseScore] = []

    def show_rows(self, rows: Sequence[CaseScore]) -> None:
        """Show the cases of a run, worst first."""
        self.beginResetModel()
        self._rows = worst_first(rows)
        self.endResetModel()

    def row_at(self, place: int) -> CaseScore:
        """Return the case in a row."""
        return self._rows[place]

    # ------------------------------------------------------------------- for Qt

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of cases."""
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_COLUMNS)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, sort key, hover text, colour or side."""
        row, column = self._rows[index.row()], _COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(column.value(row), column.digits)
        if role == _SORT_ROLE:
            return column.value(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            text = _text(column.value(row), column.digits)
            return f"{column.tip}: {text}\n{row.reason or row.warning}".strip()
        if role == Qt.ItemDataRole.BackgroundRole:
            return _tint(row)
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() in _NUMBERS:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title with its unit, and what it means."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(_COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section].title
        return _COLUMNS[section].tip if role == Qt.ItemDataRole.ToolTipRole else None


class ResultsFilter(QSortFilterProxyModel):
    """Rows of one status in which every word of the search occurs; unknown sorts last."""

    def __init__(self, model: ResultsModel) -> None:
        super().__init__()
        self._model = model
        self._status: ScoreStatus | None = None
        self._words: list[str] = []
        self.setSourceModel(model)

    def set_status(self, status: ScoreStatus | None) -> None:
        """Show cases of `status`, None for all."""
        self.beginResetModel()
        self._status = status
        self.endResetModel()

    def set_search(self, text: str) -> None:
        """Show rows with every word of `text`."""
        self.beginResetModel()
        self._words = text.lower().split()
        self.endResetModel()

    def case_id(self, place: int) -> str:
        """Return the case in a row as shown."""
        at = self.mapToSource(self.index(place, 0)).row()
        return self._model.row_at(at).case_id

    def case_ids(self) -> list[str]:
        """Return the cases as shown, in order."""
        return [self.case_id(place) for place in range(self.rowCount())]

    def filterAcceptsRow(self, source_row: int, source_parent: QModelIndex) -> bool:
        """Whether a row has the status and the words asked for."""
        row = self._model.row_at(source_row)
        if self._status is not None and row.status is not self._status:
            return False
        text = f"{row.case_id} {STATUS_TEXTS[row.status]} {row.reason} {row.warning}".lower()
        return all(word in text for word in self._words)

    def lessThan(self, left: QModelIndex, right: QModelIndex) -> bool:
        """Compare two cells; what is unknown is last in either order."""
        a, b = (self._model.data(index, _SORT_ROLE) for index in (left, right))
        if isinstance(a, float) and isinstance(b, float):
            if math.isnan(a) or math.isnan(b):
                upwards = self.sortOrder() == Qt.SortOrder.AscendingOrder
                return not math.isnan(a) if upwards else math.isnan(a) and not math.isnan(b)
            return a < b
        return str(a).lower() < str(b).lower()


def _text(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:,.{digits}f}" if math.isfinite(value) else _UNKNOWN
    return str(value)


def _tint(row: CaseScore) -> QColor | None:
    if row.status is ScoreStatus.OK:
        return QColor(TINTS["caution"]) if row.warning else None
    return QColor(TINTS["caution" if row.status in _CAUTION else "problem"])
