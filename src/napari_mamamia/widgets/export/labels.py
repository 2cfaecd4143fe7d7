"""The choice of a label map on the page Export, with what becomes of each value."""

from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtWidgets import QAbstractItemView, QFileDialog, QHeaderView, QTableView, QWidget

from napari_mamamia.services.export.labels import LabelFile, LabelLine
from napari_mamamia.widgets.controls.controls import button, column, label, named, row, set_level
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.titled_rows import TitledRows

__all__ = ["ExportLabels", "LabelTable"]

_COLUMNS: Final = (
    ("in the file", "Value of a voxel in the mask's file"),
    ("becomes", "Label that it is exported as; 0 is left out"),
    ("name", "Name of the label"),
    ("masks of", "Whose masks the rule is for"),
)
_ROW_HEIGHT: Final = 20
_MOST_ROWS: Final = 6
_HINT: Final = "Several values, or several sources that use other values, become one set of labels"


class LabelTable(TitledRows):
    """The rules of a label file, one in each row."""

    titles = _COLUMNS

    def show(self, lines: tuple[LabelLine, ...]) -> None:
        """Show other rules."""
        self.beginResetModel()
        self.rows = lines
        self.endResetModel()

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text."""
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        line: LabelLine = self.rows[index.row()]
        return (line.source, line.target, line.name, line.masks)[index.column()]


class ExportLabels(QWidget):
    """`asked` carries a file to look at, `changed` says that the choice is another one."""

    asked = Signal(object)
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_labels")
        self._path: Path | None = None
        self._found: LabelFile | None = None
        self.choose = button("export_labels_choose", "Label names and values…", _HINT, self._browse)
        self.leave_out = button(
            "export_labels_clear", "×", "Uses no label file: what is marked becomes 1", self.clear
        )
        self.table = LabelTable()
        self.preview: QTableView = named(
            QTableView(), "export_labels_preview", "What becomes of each value of a mask"
        )
        self._prepare_preview()
        self.note = label("export_labels_note", tip="What the label file says")
        self._below = column(self.note, self.preview)
        self._follow()

    def parts(self) -> tuple[QWidget, QWidget]:
        """Return the row of buttons, and what stands below it across the page."""
        return row(self.choose, self.leave_out, 1), self._below

    @property
    def found(self) -> LabelFile | None:
        """The file that is chosen, None for no file and until it was looked at."""
        return self._found

    @property
    def problem(self) -> str:
        """Why an export cannot start with this choice, "" where it can."""
        if self._path is None:
            return ""
        if self._found is None:
            return "The label file is being read."
        return "Choose another label file, or none (×)." if self._found.problem else ""

    def take(self, path: Path) -> None:
        """Choose a file and ask what it says."""
        self._path, self._found = path, None
        self._follow()
        self.asked.emit(path)

    def clear(self) -> None:
        """Choose no file."""
        self._path = self._found = None
        self._follow()

    def show_found(self, found: LabelFile) -> None:
        """Show what a file says; an answer about another file is dropped."""
        if found.path == self._path:
            self._found = found
            self._follow()

    # -------------------------------------------------------------------- inner

    def _follow(self) -> None:
        found, path = self._found, self._path
        self.leave_out.setVisible(path is not None)
        self._below.setVisible(path is not None)
        if path is not None:
            self.note.setToolTip(str(path))
            set_level(self.note, "error" if found is not None and found.problem else "hint")
            self.note.setText(_said(path, found))
        lines = () if found is None else found.lines
        self.table.show(lines)
        self.preview.setVisible(bool(lines))
        rows = min(len(lines), _MOST_ROWS)
        header = self.preview.horizontalHeader().sizeHint().height()
        self.preview.setFixedHeight(rows * self._rows.row_height + header + 4)
        self.changed.emit()

    def _prepare_preview(self) -> None:
        view = self.preview
        view.setModel(self.table)
        view.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.setAlternatingRowColors(True)
        view.verticalHeader().hide()
        self._rows = TableFit(view, _ROW_HEIGHT)
        header = view.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def _browse(self) -> None:
        start = "" if self._path is None else str(self._path.parent)
        kinds = "Label rules (*.json);;All files (*)"
        chosen, _ = QFileDialog.getOpenFileName(self, "Label names and values", start, kinds)
        if chosen:
            self.take(Path(chosen))


def _said(path: Path, found: LabelFile | None) -> str:
    if found is None:
        return f"{path.name}: being read…"
    if found.problem:
        return found.problem
    coded = f"; DICOM has no code for {', '.join(found.uncoded)}" if found.uncoded else ""
    return f"{path.name}: {len(found.rules)} rule(s){coded}"
