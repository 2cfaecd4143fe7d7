"""The errors of the open case, largest first; a click goes there."""

import math
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from qtpy.QtWidgets import QHeaderView, QTableView, QVBoxLayout, QWidget

from napari_mamamia.services.score.review import Agreement, Agrees, ErrorPart
from napari_mamamia.widgets.controls.colours import AGREEMENT_COLOURS
from napari_mamamia.widgets.controls.controls import label, named, swatch
from napari_mamamia.widgets.controls.table_fit import TableFit

__all__ = ["ErrorList"]

_TITLES: Final = ("error", "volume [mm³]", "reach [mm]")
_TIPS: Final = (
    "False: the mask has it, the reference does not. Missed: the other way round",
    "Volume of the connected part",
    "Largest distance of the part to the mask that lacks it",
)
_KINDS: Final = {Agrees.FALSE: "false", Agrees.MISSED: "missed"}
_WIDTHS: Final = (104, 96)
_ROW_HEIGHT: Final = 20
_LEAST_HEIGHT: Final = 110


class ErrorList(QWidget):
    """`chosen` carries the place of the error that was clicked, the largest at 0."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("score_errors")
        self.rows = _ErrorRows()
        self.table: QTableView = named(
            QTableView(), "score_error_table", "The errors, largest first; a click goes there"
        )
        self.table.setModel(self.rows)
        self.table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.table.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.table.setShowGrid(False)
        self.table.setMinimumHeight(_LEAST_HEIGHT)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.horizontalHeader().setHighlightSections(False)
        TableFit(self.table, _ROW_HEIGHT, _WIDTHS)
        self.table.clicked.connect(lambda index: self.chosen.emit(index.row()))
        self.note = label("score_error_note", tip="How many errors there are")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.note)
        layout.addWidget(self.table)
        self.show_errors(None)

    def show_errors(self, found: Agreement | None) -> None:
        """List the errors of a comparison; None while there is none."""
        errors = found.errors if found else ()
        self.rows.show_errors(errors)
        self.setVisible(found is not None)
        if found is None:
            return
        self.table.setVisible(bool(errors))
        false = sum(error.kind is Agrees.FALSE for error in errors)
        more = f"; the {len(errors)} largest are listed" if found.n_errors > len(errors) else ""
        said = f"{found.n_errors} error(s){more}: {false} false, {len(errors) - false} missed"
        self.note.setText(said if errors else "No error: the masks are equal.")

    def set_current(self, place: int) -> None:
        """Mark the error that is on screen, -1 for none."""
        if 0 <= place < self.rows.rowCount():
            self.table.selectRow(place)
        else:
            self.table.clearSelection()


class _ErrorRows(QAbstractTableModel):
    """One row for each error, read only."""

    def __init__(self) -> None:
        super().__init__()
        self._errors: tuple[ErrorPart, ...] = ()
        self._icons: dict[Agrees, Any] = {}

    def show_errors(self, errors: tuple[ErrorPart, ...]) -> None:
        """Show other errors."""
        self.beginResetModel()
        self._errors = errors
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of errors."""
        return 0 if parent is not None and parent.isValid() else len(self._errors)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(_TITLES)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, the colour's square before the kind, or the side."""
        error = self._errors[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _cells(index.row(), error)[index.column()]
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 0:
            return self._icon(error.kind)
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column():
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{_TIPS[index.column()]}: {_cells(index.row(), error)[index.column()]}"
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title with its unit, and what it means."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(_TITLES):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _TITLES[section]
        return _TIPS[section] if role == Qt.ItemDataRole.ToolTipRole else None

    def _icon(self, kind: Agrees) -> Any:
        if kind not in self._icons:
            self._icons[kind] = swatch(AGREEMENT_COLOURS[_KINDS[kind]])
        return self._icons[kind]


def _cells(place: int, error: ErrorPart) -> tuple[str, str, str]:
    far = error.distance_mm
    return (
        f"{place + 1}  {_KINDS[error.kind]}",
        f"{error.volume_mm3:,.1f}",
        f"{far:,.1f}" if math.isfinite(far) else "–",
    )
