"""The Cases page, to choose a data set and to find and open a case."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QAbstractTableModel, QModelIndex, QSize, Qt, Signal
from qtpy.QtGui import QAction, QColor, QFont, QFontMetrics, QKeyEvent
from qtpy.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QHeaderView,
    QMenu,
    QTableView,
    QToolButton,
    QWidget,
)

from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.case.data_set import CaseRow
from napari_mamamia.widgets.cases.start import StartPage
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    label,
    named,
    row,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import line_edit
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import LEAST

_UNKNOWN: Final = "–"
_SKIPPED_FIELDS: Final = ("case_id", "other", "acquisition_times_s")


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its title, its tooltip, and a function for a row's text (None if unknown)."""

    title: str
    tip: str
    value: Callable[[CaseRow], Any]


BASIC_COLUMNS: Final = (
    Column("case", tr("Name of the case"), lambda row: row.case_id),
    Column(
        "ph.",
        tr("Number of phases. Those of a DICOM study are counted when it is opened"),
        lambda row: row.n_phases,
    ),
    Column(
        "ref.",
        tr("Whether there is a reference mask"),
        lambda row: _mark_presence(row.has_reference),
    ),
    Column("pred.", tr("Models with a saved prediction"), lambda row: _join_names(row.predictions)),
    Column(
        "refined",
        tr("Readers with a saved mask; ✓ means accepted"),
        lambda row: _join_names(
            tuple(f"{name} ✓" if name in row.accepted else name for name in row.refined)
        ),
    ),
    Column("status", tr("Progress of the work, or the problem"), lambda row: row.status),
)


EXAM_COLUMNS: Final = (
    Column(
        "patient",
        tr("Patient"),
        lambda row: row.files.patient if row.files.visit or row.files.side else None,
    ),
    Column(
        "visit",
        tr("Visit, as named in the data set"),
        lambda row: row.files.visit.name if row.files.visit else None,
    ),
    Column("side", tr("Side of the breast"), lambda row: row.files.side or None),
    Column("split", tr("Part of the data set"), lambda row: row.files.split or None),
)


def exam_columns(rows: Sequence[CaseRow]) -> tuple[Column, ...]:
    """Return the columns of patient, visit, side and split that are not empty."""
    return tuple(column for column in EXAM_COLUMNS if any(column.value(row) for row in rows))


def clinical_columns(rows: Sequence[CaseRow]) -> tuple[Column, ...]:
    """Return a column for each field of exams and tables that is not empty."""
    records = [row.record for row in rows if row.record is not None]
    field_names = [field.name for field in fields(CaseRecord) if field.name not in _SKIPPED_FIELDS]
    filled_names = [
        name for name in field_names if any(getattr(r, name) is not None for r in records)
    ]
    other = dict.fromkeys(name for record in records for name in record.other)
    own = dict.fromkeys(name for row in rows for name in row.files.columns)
    return (
        *exam_columns(rows),
        *(_make_own_column(name) for name in own if name not in other),
        *(_make_column(name, attrgetter(name)) for name in filled_names),
        *(_make_column(name, _make_other_reader(name)) for name in other),
    )


class CaseTableModel(QAbstractTableModel):
    """A model with cases as rows, which can be replaced, searched and sorted."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[CaseRow] = []
        self._columns: tuple[Column, ...] = BASIC_COLUMNS
        self._texts: list[list[str]] = []
        self._keys: list[list[tuple[int, float, str]]] = []
        self._search_texts: list[str] = []
        self._matching: list[int] = []
        self._groups: dict[str, list[int]] = {}
        self._open: set[str] = set()
        self._open_before: set[str] | None = (
            None  # This precedes the search, which unfolds all patients.
        )
        self._shown: list[int | str] = []
        self._search = ""
        self._sorting: tuple[int, bool] | None = None
        self._current = ""

    # ------------------------------------------------------------- for the page

    def show_rows(self, rows: Sequence[CaseRow], columns: tuple[Column, ...]) -> None:
        """Show `rows` under `columns`, in this order until the user sorts them."""
        self.beginResetModel()
        self._rows, self._columns = list(rows), columns
        self._open &= {row.files.patient for row in rows}
        self._make_texts()
        if self._sorting is not None and self._sorting[0] >= len(columns):
            self._sorting = None
        self._arrange_rows()
        self.endResetModel()

    def set_row(self, row: CaseRow) -> None:
        """Update one case in its current row."""
        for index, before in enumerate(self._rows):
            if before.case_id == row.case_id:
                self._rows[index] = row
                self._texts[index], self._keys[index] = self._texts_of(row)
                self._search_texts[index] = " ".join(self._texts[index]).lower()
        self._repaint_rows()

    def set_current(self, case_id: str) -> None:
        """Mark a case as the open case, in bold."""
        self._current = case_id
        self._repaint_rows()

    def set_search(self, text: str) -> None:
        """Show only the rows that contain every word of `text`, in any column."""
        self.beginResetModel()
        self._search = text
        self._arrange_rows()
        self.endResetModel()

    def case_id(self, row: int) -> str:
        """Return the id of the case in a displayed row, or "" for the row of a patient."""
        entry = self._shown[row]
        return "" if isinstance(entry, str) else self._rows[entry].case_id

    def case_ids(self) -> list[str]:
        """Return the ids of the cases that match the search, in order, including collapsed rows."""
        return [self._rows[index].case_id for index in self._matching]

    def open_group(self, row: int, is_open: bool | None = None) -> bool:
        """Expand or collapse the exams of a patient; return whether the row belongs to a patient.

        Without `is_open`, the state is toggled.
        """
        patient = self._shown[row]
        if not isinstance(patient, str):
            return False
        if is_open is None:
            is_open = patient not in self._open
        if is_open != (patient in self._open):
            exams = self._groups[patient]
            if is_open:
                self.beginInsertRows(QModelIndex(), row + 1, row + len(exams))
                self._shown[row + 1 : row + 1] = exams
                self._open.add(patient)
                self.endInsertRows()
            else:
                self.beginRemoveRows(QModelIndex(), row + 1, row + len(exams))
                del self._shown[row + 1 : row + 1 + len(exams)]
                self._open.remove(patient)
                self.endRemoveRows()
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(self._columns) - 1))
        return True

    def group_row(self, row: int) -> int:
        """Return the row of the patient to whom a displayed row belongs, or -1 without patients."""
        return next((at for at in range(row, -1, -1) if isinstance(self._shown[at], str)), -1)

    def show_case(self, case_id: str) -> int:
        """Expand the patient of a case and return the case's row, or -1 if it does not match."""
        for patient, exams in self._groups.items():
            if any(self._rows[index].case_id == case_id for index in exams):
                self.open_group(self._shown.index(patient), is_open=True)
        ids = (self.case_id(row) for row in range(len(self._shown)))
        return next((row for row, name in enumerate(ids) if name == case_id), -1)

    # ------------------------------------------------------------------- for Qt

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of displayed rows."""
        return 0 if parent is not None and parent.isValid() else len(self._shown)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns."""
        return 0 if parent is not None and parent.isValid() else len(self._columns)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip or font."""
        place = self._shown[index.row()]
        if isinstance(place, str):
            return self._group_data(place, index.column(), role)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._texts[place][index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._make_tooltip(place, index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            unknown = self._texts[place][index.column()] == _UNKNOWN
            return QColor(QUIET_COLOUR) if unknown else None
        if role == Qt.ItemDataRole.FontRole and self._rows[place].case_id == self._current:
            return bold_font()
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's title and tooltip."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(self._columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section].title
        return self._columns[section].tip if role == Qt.ItemDataRole.ToolTipRole else None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column: numbers by value, text in natural order, unknown values last."""
        self.layoutAboutToBeChanged.emit()
        old_indices = [(index, self._shown[index.row()]) for index in self.persistentIndexList()]
        backwards = order == Qt.SortOrder.DescendingOrder
        self._sorting = (column, backwards) if 0 <= column < len(self._columns) else None
        self._arrange_rows()
        where = {place: row for row, place in enumerate(self._shown)}
        for index, place in old_indices:
            row = where.get(place)
            new = QModelIndex() if row is None else self.index(row, index.column())
            self.changePersistentIndex(index, new)
        self.layoutChanged.emit()

    # -------------------------------------------------------------------- inner

    def _make_texts(self) -> None:
        pairs = [self._texts_of(row) for row in self._rows]
        self._texts = [texts for texts, _ in pairs]
        self._keys = [keys for _, keys in pairs]
        self._search_texts = [" ".join(texts).lower() for texts in self._texts]

    def _texts_of(self, row: CaseRow) -> tuple[list[str], list[tuple[int, float, str]]]:
        values = [column.value(row) for column in self._columns]
        return [_format_value(value) for value in values], [
            _make_sort_key(value) for value in values
        ]

    def _arrange_rows(self) -> None:
        words = self._search.lower().split()
        texts = self._search_texts
        shown = [n for n in range(len(texts)) if all(word in texts[n] for word in words)]
        if self._sorting is not None:
            column, backwards = self._sorting
            unknown = [n for n in shown if self._keys[n][column][0] == _LAST]
            valued_rows = [n for n in shown if self._keys[n][column][0] != _LAST]
            valued_rows.sort(key=lambda n: self._keys[n][column], reverse=backwards)
            shown = valued_rows + unknown
        self._matching = shown
        self._groups = self._group_rows(shown)
        if words:
            if self._open_before is None:
                self._open_before = self._open
            self._open = set(self._groups)
        elif self._open_before is not None:
            self._open, self._open_before = self._open_before, None
        self._shown = list(shown)
        if self._groups:
            self._matching = [index for exams in self._groups.values() for index in exams]
            self._shown = []
            for patient, exams in self._groups.items():
                self._shown += [patient, *(exams if patient in self._open else ())]

    def _group_rows(self, shown: Sequence[int]) -> dict[str, list[int]]:
        groups: dict[str, list[int]] = {}
        for index in shown:
            files = self._rows[index].files
            groups.setdefault(files.patient or files.case_id, []).append(index)
        patients = Counter(row.files.patient for row in self._rows)
        has_several = any(count > 1 for patient, count in patients.items() if patient)
        return groups if has_several else {}

    def _group_data(self, patient: str, column: int, role: int) -> Any:
        exams = self._groups[patient]
        if role == Qt.ItemDataRole.DisplayRole and column == 0:
            sign = "▾" if patient in self._open else "▸"
            return f"{sign} {patient} ({len(exams)})"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr_n(
                "{patient}: {n} exam. Enter unfolds or folds the exam.",
                "{patient}: {n} exams. Enter unfolds or folds the exams.",
                len(exams),
                patient=patient,
            )
        is_current = any(self._rows[index].case_id == self._current for index in exams)
        return bold_font() if role == Qt.ItemDataRole.FontRole and is_current else None

    def _make_tooltip(self, place: int, column: int) -> str:
        problems = self._rows[place].problems
        if problems and self._columns[column].title in ("case", "status"):
            return "\n".join(problems)
        return f"{self._columns[column].tip}: {self._texts[place][column]}"

    def _repaint_rows(self) -> None:
        if self._shown:
            last = self.index(len(self._shown) - 1, len(self._columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)


_FIRST, _LAST = 0, 1


def _make_sort_key(value: Any) -> tuple[int, float, str]:
    if value is None or value == "":
        return (_LAST, 0.0, "")
    if isinstance(value, bool | int | float):
        return (_FIRST, float(value), "")
    return (_FIRST, 0.0, re.sub(r"\d+", lambda m: m[0].zfill(12), str(value).lower()))


def _format_value(value: Any) -> str:
    if value is None or value == "":
        return _UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mark_presence(there: bool) -> str | None:
    return "yes" if there else None


def _join_names(names: tuple[str, ...]) -> str | None:
    return ", ".join(names) or None


def _make_column(name: str, read: Callable[[CaseRecord], Any]) -> Column:
    title = name.replace("_", " ")
    return Column(
        title,
        tr("Clinical table: {title}", title=title),
        lambda row: None if row.record is None else read(row.record),
    )


def _make_own_column(name: str) -> Column:
    return Column(
        name,
        tr("Table of the data set: {title}", title=name),
        lambda row: row.files.columns.get(name) or None,
    )


def _make_other_reader(name: str) -> Callable[[CaseRecord], Any]:
    return lambda record: record.other.get(name)


def bold_font(font: QFont | None = None) -> QFont:
    """Return a font in bold, by default the application's font."""
    new_font = QFont() if font is None else QFont(font)
    new_font.setBold(True)
    return new_font


_CASE_WIDTH = 60
_MOST_CASE_WIDTH = 150
_COLUMN_WIDTHS = (_CASE_WIDTH, 30, 32, 50, 52, 60)
_LARGER, _WIDER = 1.2, 1.7
"""Scale of the text and the columns if the list has the full width of the window (our choice)."""
_IMPORT = tr("Import DICOM…")
_NOTHING_OPEN = tr(
    "Choose a data set, or drop it here. Your images are never changed, and your masks are saved "
    "in a separate folder."
)


_LEAST_ROWS: Final = 2


class CaseTable(QTableView):
    """The table of cases; Enter and double-click open a case, and other keys go to the window."""

    opened = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.fit = TableFit(self)
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.doubleClicked.connect(lambda index: self.opened.emit(index.row()))

    def minimumSizeHint(self) -> QSize:
        """Return a size for header and two rows, which fits on a low screen."""
        hint = super().minimumSizeHint()
        rows = _LEAST_ROWS * self.verticalHeader().defaultSectionSize()
        least = self.horizontalHeader().sizeHint().height() + rows + 2 * self.frameWidth()
        return QSize(hint.width(), min(hint.height(), least))

    def sizeHint(self) -> QSize:
        """Return the minimum size, because a scroll area uses the size hint of its page.

        The layout gives the table the remaining space.
        """
        return QSize(super().sizeHint().width(), self.minimumSizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open a case on Enter; expand or collapse a patient on Right or Left.

        Letters are ignored, because they are shortcuts of the window.
        """
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.currentIndex().isValid():
                self.opened.emit(self.currentIndex().row())
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._fold(event.key()):
            event.accept()
        elif event.text().strip():
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _fold(self, key: int) -> bool:
        model = self.model()
        row = self.currentIndex().row()
        if not isinstance(model, CaseTableModel) or row < 0:
            return False
        group = model.group_row(row)
        if group < 0 or (key == Qt.Key.Key_Right and group != row):
            return False
        self.selectRow(group)
        return model.open_group(group, is_open=key == Qt.Key.Key_Right)


class CasesPage(QWidget):
    """The Cases page with folder, search and table.

    The signals `folder_chosen` and `workspace_chosen` carry a path, and `case_chosen` a case id.
    `queue_changed` reports that the order or selection of rows changed. `page_wanted` carries the
    name of another page for work on many cases; `predict_wanted` and `leaderboard_wanted` carry no
    value.
    """

    folder_chosen = Signal(object)
    case_chosen = Signal(str)
    workspace_chosen = Signal(object)
    import_wanted = Signal()
    protocol_wanted = Signal()
    predict_wanted = Signal()
    leaderboard_wanted = Signal()
    page_wanted = Signal(str)
    queue_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("cases")
        self._rows: tuple[CaseRow, ...] = ()
        self._workspace: Path | None = None
        self._is_wide = False
        self._added: dict[str, Column] = {}
        self._available: tuple[Column, ...] = ()
        self.model = CaseTableModel()
        self._build_controls()
        self.show_nothing()

    # ------------------------------------------------------------- for the dock

    def show_nothing(self) -> None:
        """Show the available sources, with a button for the next step."""
        self._set_open(False)
        self.note.setText(_NOTHING_OPEN)

    def show_opening(self, name: str) -> None:
        """Show the name of the data set that is being opened; if it is "", show the sources."""
        if self.table.isHidden():
            self.start.setVisible(not name)
            self.note.setText(tr("Opening {name}…", name=name) if name else _NOTHING_OPEN)

    def show_data_set(self, root: Path, summary: str, rows: Sequence[CaseRow]) -> None:
        """Show the cases of an opened data set."""
        self._rows = tuple(rows)
        self.folder.setText(str(root))
        self.folder.setCursorPosition(len(str(root)))
        self.search.clear()
        self._added = {shown.title: shown for shown in exam_columns(rows)}
        self._available = clinical_columns(rows)
        self._fill_column_menu()
        self._show_rows()
        self._fit_columns()
        self._set_open(True)
        self.note.setText(summary)

    def show_workspace(self, folder: Path, why: str = "") -> None:
        """Show the folder in which the masks of this data set are stored."""
        self._workspace = folder
        self.workspace.setText(tr("Your masks: …/{name}", name=folder.name))
        reason = f" ({why})" if why else ""
        self.workspace.setToolTip(
            tr(
                "Predictions, edited masks and exports are saved in {folder}{reason}",
                folder=folder,
                reason=reason,
            )
        )

    def set_row(self, changed: CaseRow) -> None:
        """Update the row of a case."""
        self._rows = tuple(
            changed if before.case_id == changed.case_id else before for before in self._rows
        )
        self.model.set_row(changed)

    def set_current(self, case_id: str) -> None:
        """Show the open case in bold and scroll to it."""
        self.model.set_current(case_id)
        row = self.model.show_case(case_id)
        if row >= 0:
            self.table.selectRow(row)

    def choose_next(self) -> None:
        """Select the first case without a refined mask, or otherwise the first case.

        Enter opens the case.
        """
        queue = self.queue()
        if self.table.currentIndex().isValid() or not queue:
            return
        refined = {row.case_id for row in self._rows if row.refined}
        next_case = next((case_id for case_id in queue if case_id not in refined), queue[0])
        self.table.selectRow(self.model.show_case(next_case))

    def take_keyboard(self) -> None:
        """Give the keyboard focus to the list."""
        if self.table.isVisible():
            self.table.setFocus()

    def set_recent(self, folders: Sequence[Path]) -> None:
        """Fill the menu of recent data sets."""
        menu = self.recent.menu()
        menu.clear()
        self.start.set_recent(folders)
        for folder in folders:
            action = menu.addAction(str(folder))
            action.triggered.connect(
                lambda _checked=False, path=folder: self.folder_chosen.emit(path)
            )
        self.recent.setEnabled(bool(folders))

    def show_import_begun(self, is_begun: bool) -> None:
        """Show on the button whether an import is in progress."""
        self.to_import.setText(tr("Back to the import…") if is_begun else _IMPORT)

    def set_wide(self, is_wide: bool) -> None:
        """Use a larger font while the list has the full width, for reading at a distance.

        Text that wraps in the narrow list then fits on one line, so more rows are visible.
        """
        self._is_wide = is_wide
        ways = QBoxLayout.Direction
        for pair, shares in self._pairs:
            lines: Any = pair.layout()
            lines.setDirection(ways.LeftToRight if is_wide else ways.TopToBottom)
            for index, share in enumerate(shares):
                lines.setStretch(index, share if is_wide else 0)
            lines.activate()  # A hidden page would always report its former size.
        self.layout().invalidate()
        self.table.setStyleSheet("")
        points = self.table.font().pointSizeF()
        if is_wide and points > 0:
            self.table.setStyleSheet(f"QTableView {{ font-size: {_LARGER * points:.1f}pt; }}")
        self._fit_columns()

    def queue(self) -> list[str]:
        """Return the listed case ids in order, for the actions Next and Previous."""
        return self.model.case_ids()

    # -------------------------------------------------------------------- inner

    def _build_controls(self) -> None:
        self.folder = line_edit(
            "cases_folder",
            tr("Folder or file of the data set; Enter opens it"),
            tr("path of a folder, zip or volume"),
            on_return=self._enter_folder,
        )
        self.recent = tool_button("cases_recent", "▾", tr("Data sets opened before"), lambda: None)
        self.recent.setMenu(QMenu(self.recent))
        self.recent.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.recent.setEnabled(False)
        self.browse = button(
            "cases_browse",
            tr("Open folder…"),
            tr("Opens a DICOM exam, a patient's folder or a data set."),
            self._browse_folder,
        )
        self.to_import = button(
            "cases_import",
            _IMPORT,
            tr(
                "Imports cases from a DICOM folder, a whole study or a zip file, which you can "
                "also drop here."
            ),
            self.import_wanted.emit,
        )
        self.protocol = button(
            "cases_protocol",
            tr("Protocol…"),
            tr(
                "Loads an annotation protocol. A protocol that hides data must be loaded before a "
                "data set is opened."
            ),
            self.protocol_wanted.emit,
        )
        self.search = line_edit(
            "cases_search", tr("Shows only cases with these words in any column"), tr("search")
        )
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._search_cases)
        self.columns = tool_button(
            "cases_columns",
            tr("Columns ▾"),
            tr("Adds columns of the clinical table."),
            lambda: None,
        )
        self.columns.setMenu(QMenu(self.columns))
        self.columns.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.table: CaseTable = named(
            CaseTable(),
            "cases_table",
            tr("Double-click a case or press Enter to open it; click a title to sort."),
        )
        self.table.setModel(self.model)
        self.table.setSortingEnabled(True)
        self.table.opened.connect(self._open_row)
        self.model.layoutChanged.connect(lambda *_: self.queue_changed.emit())
        self.note = label("cases_note", tip=tr("The open data set"))
        opens = row(self.browse, self.to_import, self.protocol, 1)
        self._finder = row(self.search, self.columns)
        self.workspace = label("cases_workspace", tip=tr("Folder of your masks"))
        self.change = tool_button(
            "cases_workspace_change",
            tr("Change…"),
            tr("Chooses and stores a different folder for your masks of this data set."),
            self._choose_workspace,
        )
        self._work_line = row(self.workspace, self.change)
        self._work_line.layout().setStretch(0, 1)
        self._many = self._make_many()
        self.start = StartPage()
        self.start.path_chosen.connect(self.folder_chosen.emit)
        opening = column(row(self.folder, self.recent), opens)
        finding = column(self.note, self._finder)
        self._pairs = ((opening, (1, 0)), (finding, (1, 1)), (self._many, (0, 1)))
        fill_column(
            self, opening, finding, self.start, (self.table, 1), self._many, self._work_line, 0
        )

    def _make_many(self) -> QWidget:
        self.open = button(
            "cases_open",
            tr("Open case"),
            tr("Opens the selected case, like Enter or a double-click."),
            self._open_chosen,
            primary=True,
        )
        predict = button(
            "cases_predict_all",
            tr("Predict all cases"),
            tr(
                "Predicts every case that has no prediction yet, with the model of the Predict "
                "page."
            ),
            self.predict_wanted.emit,
        )
        self.leaderboard = button(
            "cases_leaderboard",
            tr("Show leaderboard"),
            tr("Shows the leaderboard, or how to open a ranking."),
            self.leaderboard_wanted.emit,
        )
        review = button(
            "cases_review",
            tr("Review study"),
            tr("Goes to the Review page for a study with several readers."),
            lambda: self.page_wanted.emit("Review"),
        )
        export = button(
            "cases_export_all",
            tr("Export all cases"),
            tr("Goes to the Export page to write and verify the masks of all cases."),
            lambda: self.page_wanted.emit("Export"),
        )
        return column(row(self.open, predict, 1), row(self.leaderboard, review, export, 1))

    def _fit_columns(self) -> None:
        share = _WIDER if self._is_wide else 1
        self.table.fit.set_widths([round(share * width) for width in _COLUMN_WIDTHS])
        longest = max((row.case_id for row in self._rows), key=len, default="")
        # The open case is shown in bold.
        wide = QFontMetrics(bold_font(self.table.font())).horizontalAdvance(longest) + 14
        most = round(share * _MOST_CASE_WIDTH * self.table.fit.row_height / LEAST)
        self.table.setColumnWidth(0, min(max(wide, self.table.columnWidth(0)), most))

    def _open_chosen(self) -> None:
        index = self.table.currentIndex()
        if index.isValid():
            self._open_row(index.row())

    def _open_row(self, row: int) -> None:
        if not self.model.open_group(row):
            self.case_chosen.emit(self.model.case_id(row))

    def _set_open(self, is_open: bool) -> None:
        self._many.setVisible(is_open)
        self._finder.setVisible(is_open)
        self._work_line.setVisible(is_open)
        self.table.setVisible(is_open)
        self.start.setVisible(not is_open)
        self.browse.setVisible(is_open)

    def _enter_folder(self) -> None:
        text = self.folder.text().strip()
        if text:
            self.folder_chosen.emit(Path(text).expanduser())

    def _browse_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(
            self, tr("Open a data set"), self.folder.text() or str(Path.home())
        )
        if chosen:
            self.folder_chosen.emit(Path(chosen))

    def _choose_workspace(self) -> None:
        start = str(self._workspace.parent) if self._workspace else str(Path.home())
        chosen = QFileDialog.getExistingDirectory(self, tr("Folder for your masks"), start)
        if chosen:
            self.workspace_chosen.emit(Path(chosen))

    def _search_cases(self, text: str) -> None:
        self.model.set_search(text)
        self.queue_changed.emit()

    def _show_rows(self) -> None:
        added = [column for column in self._available if column.title in self._added]
        exam = [column for column in added if column in EXAM_COLUMNS]
        rest = [column for column in added if column not in EXAM_COLUMNS]
        case, *basic = BASIC_COLUMNS
        self.model.show_rows(self._rows, (case, *exam, *basic, *rest))
        self.queue_changed.emit()

    def _fill_column_menu(self) -> None:
        menu = self.columns.menu()
        menu.clear()
        self.columns.setEnabled(bool(self._available))
        for one in self._available:
            action = QAction(one.title, menu)
            action.setCheckable(True)
            action.setChecked(one.title in self._added)
            action.toggled.connect(lambda on, one=one: self._toggle_column(one, on))
            menu.addAction(action)

    def _toggle_column(self, column: Column, on: bool) -> None:
        if on:
            self._added[column.title] = column
        else:
            self._added.pop(column.title, None)
        self._show_rows()
