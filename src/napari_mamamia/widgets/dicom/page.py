"""The Import page: contents of a DICOM folder or zip file, new cases, and their data set."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import (
    QFileDialog,
    QHeaderView,
    QLineEdit,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.names import readable_name
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.widgets.controls.colours import TINTS
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    heading,
    label,
    named,
    row,
    set_level,
    set_primary,
    tool_button,
)
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.progress_bar import ProgressBar
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.titled_rows import TitledRows
from napari_mamamia.widgets.dicom.choice import StudyChoice
from napari_mamamia.widgets.dicom.form import ImportForm
from napari_mamamia.widgets.dicom.study import StudyView
from napari_mamamia.widgets.dicom.text import study_text

# Several studies in one source have one row each, with a check box and an id; a click shows the
# study below.

_TITLES: Final = (
    ("study", tr("The id of the study's case; ticked studies are imported.")),
    (
        tr("Contents"),
        tr(
            "Number of phases and size, or a note that the study cannot be imported; click to "
            "show the reason below."
        ),
    ),
)
_MOST_ROWS: Final = 6


class StudiesModel(TitledRows):
    """Table model of the studies; `toggled` carries a row and whether the study is imported."""

    titles = _TITLES
    toggled = Signal(int, bool)

    def show_choices(self, choices: Sequence[StudyChoice]) -> None:
        """Replace the displayed studies."""
        self.beginResetModel()
        self.rows = tuple(choices)
        self.endResetModel()

    def set_choice(self, at: int, choice: StudyChoice) -> None:
        """Update the choice for one study."""
        self.rows = (*self.rows[:at], choice, *self.rows[at + 1 :])
        self.dataChanged.emit(self.index(at, 0), self.index(at, len(_TITLES) - 1))

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip, colour or check state."""
        choice: StudyChoice = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            is_first = index.column() == 0
            return choice.found.case_id or tr("(no id)") if is_first else study_text(choice.found)
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
        """Return the flags of a cell; only studies that can be imported have a check box."""
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.column() == 0 and not self.rows[index.row()].problem:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        return flags

    def setData(self, index: QModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Emit `toggled` when the user changes a check box."""
        if role != Qt.ItemDataRole.CheckStateRole:
            return False
        self.toggled.emit(index.row(), Qt.CheckState(value) == Qt.CheckState.Checked)
        return True


class StudiesTable(QTableView):
    """The table of studies; `study_shown` carries the row that was clicked or selected by keys."""

    study_shown = Signal(int)

    def __init__(self, model: StudiesModel) -> None:
        super().__init__()
        named(self, "import_studies", tr("Studies in this source; click one to show it below."))
        self.setModel(model)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self._rows = TableFit(self)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.selectionModel().currentRowChanged.connect(self._show_study)
        model.modelReset.connect(self._fit_height)

    def _show_study(self, index: QModelIndex) -> None:
        if index.isValid():
            self.study_shown.emit(index.row())

    def _fit_height(self) -> None:
        rows = min(self.model().rowCount(), _MOST_ROWS)
        header = self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(rows * self._rows.row_height + header + 2 * self.frameWidth() + 2)


_STEPS: Final = 1000
_WHAT: Final = tr(
    "Drop a DICOM folder, a whole study or a zip file on the window, or choose one. Check the "
    "contents and confirm the phases. The exam is then added to a data set as a case, and opened. "
    "The DICOM files are never changed."
)


class ImportState(Enum):
    """States of the Import page."""

    IDLE = "idle"
    LOOKING = "looking"
    FOUND = "found"
    IMPORTING = "importing"
    DONE = "done"


class ImportPage(QWidget):
    """The Import page.

    The signal `source_wanted` carries a path, `study_shown` a row, and `study_toggled` a row and a
    bool.
    """

    source_wanted = Signal(object)
    study_shown = Signal(int)
    study_toggled = Signal(int, bool)
    import_wanted = Signal()
    open_wanted = Signal()
    cancel_wanted = Signal()
    table_wanted = Signal()
    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("import")
        self.state = ImportState.IDLE
        self.studies_model = StudiesModel()
        self.studies_model.toggled.connect(self.study_toggled)
        self.studies = StudiesTable(self.studies_model)
        self.studies.study_shown.connect(self.study_shown)
        self.study = StudyView()
        self.form = ImportForm()
        self._make_controls()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        top = row(heading(tr("Import DICOM")), 1, self.back)
        for part in (
            top,
            row(self.source, self.folder, self.zip),
            self.note,
            row(self.progress, self.cancel),
            self._make_area(),
            self.blocked,
            row(self.start, self.open),
            row(self.to_cases, self.to_table),
        ):
            layout.addWidget(part)
        layout.setStretchFactor(self.area, 1)
        layout.addStretch()
        self.show_idle()

    # ------------------------------------------------------------- for the flow

    def show_idle(self, text: str = "", level: str = "hint") -> None:
        """Show what can be imported, or `text` with the last result."""
        self._set_state(ImportState.IDLE)
        self._show_note(text or _WHAT, level)

    def show_looking(self, source: Path) -> None:
        """Show that a source is being read."""
        self.source.setText(str(source))
        self.source.setToolTip(str(source))
        self._set_state(ImportState.LOOKING)
        self.progress.setValue(0)
        self._show_note(tr("Looking for DICOM files"))

    def show_progress(self, progress: Progress) -> None:
        """Show the progress of reading or importing."""
        self.progress.setValue(round(progress.fraction * _STEPS))
        is_counted = self.state is ImportState.LOOKING and progress.total > 1
        counts = (
            tr(": {done:,} of {total:,}", done=progress.done, total=progress.total)
            if is_counted
            else ""
        )
        self._show_note(f"{progress.text}{counts}")

    def show_found(self, choices: Sequence[StudyChoice], text: str) -> None:
        """Show the studies found, in a table if there are several."""
        self._set_state(ImportState.FOUND)
        self._show_note(text)
        self.studies_model.show_choices(choices)
        self.studies.setVisible(len(choices) > 1)
        self.area.verticalScrollBar().setValue(0)

    def select_study(self, at: int) -> None:
        """Select the row of the displayed study."""
        self.studies.blockSignals(True)
        self.studies.selectRow(at)
        self.studies.blockSignals(False)

    def show_importing(self) -> None:
        """Show that the import is running."""
        self._set_state(ImportState.IMPORTING)
        self.progress.setValue(0)

    def show_done(self, text: str, level: str) -> None:
        """Show the result of the import."""
        self._set_state(ImportState.DONE)
        self._show_note(text, level)

    def show_failed(self, text: str) -> None:
        """Show the table again with the reason why nothing was imported."""
        self._set_state(ImportState.FOUND)
        self._show_note(text, "error")

    def show_ready(self, blocked: str, n_cases: int, *, can_open: bool) -> None:
        """Show whether an import can start, and what prevents it."""
        self.start.setText(
            tr_n(
                "Import {n} case",
                "Import {n} cases",
                n_cases,
            )
            if n_cases
            else tr("Import")
        )
        self.start.setEnabled(n_cases > 0 and not blocked)
        self.blocked.setText(blocked)
        self.blocked.setVisible(bool(blocked) and self.state is ImportState.FOUND)
        self.open.setVisible(can_open and self.state is ImportState.FOUND)

    # -------------------------------------------------------------------- inner

    def _make_controls(self) -> None:
        self.back = tool_button(
            "import_back",
            tr("✕ Close"),
            tr("Returns to the cases without importing."),
            self._close_page,
        )
        self.source: QLineEdit = named(
            QLineEdit(), "import_source", tr("The source that is being read.")
        )
        self.source.setReadOnly(True)
        self.folder = button(
            "import_folder",
            tr("Folder…"),
            tr("Chooses a folder of DICOM files."),
            self._browse_folder,
        )
        self.zip = button(
            "import_zip", tr("Zip…"), tr("Chooses a zip file of DICOM files."), self._browse_zip
        )
        self.note = label("import_note", tip=tr("The source, or the studies found in it."))
        self.progress: ProgressBar = named(
            ProgressBar(), "import_progress", tr("Progress of the running job.")
        )
        self.progress.setRange(0, _STEPS)
        self.progress.setFixedHeight(8)
        self.cancel = button(
            "import_cancel",
            tr("Stop"),
            tr("Stops the job without leaving an incomplete case."),
            self.cancel_wanted.emit,
        )
        self.blocked = label("import_blocked", tip=tr("What prevents the import."))
        set_level(self.blocked, "warning")
        self.start = button(
            "import_start",
            tr("Import 1 case"),
            tr("Writes the phases as NIfTI with their times, and opens the first case."),
            self.import_wanted.emit,
            primary=True,
        )
        self.open = button(
            "import_open",
            tr("Open without importing"),
            tr("Shows the DICOM files as a case without writing anything."),
            self.open_wanted.emit,
        )
        self.to_cases = button(
            "import_to_cases",
            tr("Show the cases"),
            tr("Goes to the list of cases."),
            self._close_page,
            primary=True,
        )
        self.to_table = button(
            "import_to_table",
            tr("Back to the table"),
            tr("Shows the studies again."),
            self.table_wanted.emit,
        )

    def _make_area(self) -> PageArea:
        content = column(self.studies, self.study, self.form, 1)
        content.layout().setContentsMargins(0, 0, 4, 0)
        self.area = PageArea(content, "import_area", is_part=True)
        return self.area

    def _set_state(self, state: ImportState) -> None:
        self.state = state
        running = state in (ImportState.LOOKING, ImportState.IMPORTING)
        is_found = state is ImportState.FOUND
        self.progress.setVisible(running)
        self.cancel.setVisible(running)
        self.area.setVisible(is_found)
        self.start.setVisible(is_found)
        self.open.setVisible(False)
        self.blocked.setVisible(False)
        for after in (self.to_cases, self.to_table):
            after.setVisible(state is ImportState.DONE)
        self.source.setVisible(state is not ImportState.IDLE)
        for choose in (self.folder, self.zip):
            choose.setEnabled(not running)
        set_primary(self.folder, state is ImportState.IDLE)

    def _show_note(self, text: str, level: str = "hint") -> None:
        self.note.setText(text)
        set_level(self.note, level)

    def _close_page(self) -> None:
        self.closed.emit()

    def _browse_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(
            self, tr("Import DICOM"), self._find_start_folder()
        )
        if chosen:
            self.source_wanted.emit(Path(chosen))

    def _browse_zip(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self,
            tr("Import DICOM"),
            self._find_start_folder(),
            tr("Archives (*.zip);;All files (*)"),
        )
        if chosen:
            self.source_wanted.emit(Path(chosen))

    def _find_start_folder(self) -> str:
        return str(Path(self.source.text()).parent) if self.source.text() else str(Path.home())
