"""The Cases page, to choose a data set and to find and open a case."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtGui import QAction, QFontMetrics, QKeyEvent
from qtpy.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QHeaderView,
    QLineEdit,
    QMenu,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.data_set import CaseRow
from napari_mamamia.widgets.cases.model import (
    BASIC_COLUMNS,
    EXAM_COLUMNS,
    CaseTableModel,
    Column,
    bold_font,
    clinical_columns,
    exam_columns,
)
from napari_mamamia.widgets.cases.start import StartPage
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    label,
    named,
    row,
    tool_button,
)
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import LEAST

_CASE_WIDTH = 60
_MOST_CASE_WIDTH = 150
_COLUMN_WIDTHS = (_CASE_WIDTH, 30, 32, 50, 52, 60)
_LARGER, _WIDER = 1.2, 1.7
"""Scale of text and columns if the list has the full width of the window (our choice)."""
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
        """Open a case on Enter; fold or unfold a patient on Left and Right.

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
        """Show the possible sources, with a button for the next step."""
        self._set_open(False)
        self.note.setText(_NOTHING_OPEN)

    def show_opening(self, name: str) -> None:
        """Show the name of the data set that is being opened; "" shows the choices."""
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
        """Show the folder of the masks of this data set."""
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
        self.folder: QLineEdit = named(
            QLineEdit(), "cases_folder", tr("Folder or file of the data set; Enter opens it")
        )
        self.folder.setPlaceholderText(tr("path of a folder, zip or volume"))
        self.folder.returnPressed.connect(self._enter_folder)
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
        self.search: QLineEdit = named(
            QLineEdit(),
            "cases_search",
            tr("Shows only cases with these words in any column"),
        )
        self.search.setPlaceholderText(tr("search"))
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
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
        layout.addWidget(opening)
        layout.addWidget(finding)
        layout.addWidget(self.start)
        layout.addWidget(self.table, stretch=1)
        layout.addWidget(self._many)
        layout.addWidget(self._work_line)
        layout.addStretch()

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
