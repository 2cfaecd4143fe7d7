"""Several studies of one source: a tick, an id and a line each; a click shows one below."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import QHeaderView, QTableView

from napari_mamamia.core.names import readable_name
from napari_mamamia.widgets.controls.colours import TINTS
from napari_mamamia.widgets.controls.controls import named
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.titled_rows import TitledRows
from napari_mamamia.widgets.dicom.choice import StudyChoice
from napari_mamamia.widgets.dicom.text import study_text

__all__ = ["StudiesModel", "StudiesTable"]

_TITLES: Final = (
    ("study", "The id that its case gets; the tick says whether it is imported"),
    ("what it is", "Phases and size, or that it is refused; a click shows why below"),
)
_ROW_HEIGHT: Final = 22
_MOST_ROWS: Final = 6


class StudiesModel(TitledRows):
    """Choices as rows; `toggled` carries a row and whether the study is imported."""

    titles = _TITLES
    toggled = Signal(int, bool)

    def show_choices(self, choices: Sequence[StudyChoice]) -> None:
        """Show studies in place of others."""
        self.beginResetModel()
        self.rows = tuple(choices)
        self.endResetModel()

    def set_choice(self, at: int, choice: StudyChoice) -> None:
        """Show one study as it is now."""
        self.rows = (*self.rows[:at], choice, *self.rows[at + 1 :])
        self.dataChanged.emit(self.index(at, 0), self.index(at, len(_TITLES) - 1))

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, hover text, colour, or whether it is ticked."""
        choice: StudyChoice = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            is_first = index.column() == 0
            return choice.found.case_id or "(no id)" if is_first else study_text(choice.found)
        if role == Qt.ItemDataRole.ToolTipRole:
            where = f"{choice.found.place}, {choice.found.origin}"
            return "\n".join(filter(None, (choice.problem, readable_name(where))))
        if role == Qt.ItemDataRole.BackgroundRole and choice.problem:
            return QColor(TINTS["problem"])
        if role == Qt.ItemDataRole.CheckStateRole and index.column() == 0:
            on = choice.is_wanted and not choice.problem
            return Qt.CheckState.Checked if on else Qt.CheckState.Unchecked
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Let studies that can be imported be ticked."""
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.column() == 0 and not self.rows[index.row()].problem:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        return flags

    def setData(self, index: QModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Ask for a study to be imported or not."""
        if role != Qt.ItemDataRole.CheckStateRole:
            return False
        self.toggled.emit(index.row(), Qt.CheckState(value) == Qt.CheckState.Checked)
        return True


class StudiesTable(QTableView):
    """The list; `study_shown` carries the row that was clicked or reached by keys."""

    study_shown = Signal(int)

    def __init__(self, model: StudiesModel) -> None:
        super().__init__()
        named(self, "import_studies", "Studies of this source; a click shows one below")
        self.setModel(model)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self._rows = TableFit(self, _ROW_HEIGHT)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.selectionModel().currentRowChanged.connect(self._show)
        model.modelReset.connect(self._fit)

    def _show(self, index: QModelIndex) -> None:
        if index.isValid():
            self.study_shown.emit(index.row())

    def _fit(self) -> None:
        rows = min(self.model().rowCount(), _MOST_ROWS)
        header = self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(rows * self._rows.row_height + header + 2 * self.frameWidth() + 2)
