"""The Import page: contents of a DICOM folder or zip file, new cases, and their data set."""

from collections.abc import Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QHeaderView,
    QLabel,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import Remedy
from napari_mamamia.core.names import readable_name
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.records import CaseWarning
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.io.dicom.roles import Use
from napari_mamamia.services.dicom.preview import SlicePicture, StudyPreview
from napari_mamamia.widgets.controls.colours import TINTS
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    discard,
    fill_column,
    heading,
    label,
    named,
    row,
    set_level,
    set_primary,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, line_edit
from napari_mamamia.widgets.controls.grey_pixmap import slice_pixmap
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.progress_bar import ProgressBar
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.controls.titled_rows import TitledRows
from napari_mamamia.widgets.dicom.choice import StudyChoice
from napari_mamamia.widgets.dicom.form import ImportForm
from napari_mamamia.widgets.dicom.series import SeriesModel, SeriesTable
from napari_mamamia.widgets.dicom.text import (
    clock_text,
    remedy_text,
    sentence,
    study_text,
    warning_text,
)

# Phases of a study are shown as images with a check box each.

_SIDE: Final = 76
_CELL: Final = 84


class PhaseStrip(QWidget):
    """One cell for each phase; `toggled` carries the phase number and whether it is selected."""

    toggled = Signal(int, bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("import_phases")
        self.boxes: list[CheckBox] = []
        self._pictures: list[QLabel] = []
        self._cells: list[QWidget] = []
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)

    def show_phases(self, names: Sequence[str], times: Sequence[str], kept: Sequence[int]) -> None:
        """Show the names and times of the phases; images follow later."""
        for cell in self._cells:
            discard(cell)
        self.boxes, self._pictures, self._cells = [], [], []
        for index, (name, time) in enumerate(zip(names, times, strict=True)):
            self._cells.append(self._make_cell(index, name, time, index in kept))
        self._lay_out(again=True)

    def show_pictures(self, pictures: Sequence[SlicePicture]) -> None:
        """Show the image of each phase."""
        for label_of_picture, picture in zip(self._pictures, pictures, strict=False):
            label_of_picture.setPixmap(slice_pixmap(picture, _SIDE))

    def _make_cell(self, index: int, name: str, time: str, is_kept: bool) -> QWidget:
        picture: QLabel = named(
            QLabel(),
            f"import_picture_{index}",
            tr("Middle slice of {phase}.", phase=name),
        )
        picture.setFixedSize(_SIDE, _SIDE)
        picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box = checkbox(
            f"import_phase_{index}",
            f"{name} · {time}",
            tr("Makes {phase} part of the case.", phase=name),
            is_on=is_kept,
            on_toggle=lambda on: self.toggled.emit(index, on),
        )
        cell = QWidget(self)
        fill_column(cell, picture, box, spacing=2)
        self.boxes.append(box)
        self._pictures.append(picture)
        return cell

    def _lay_out(self, *, again: bool = False) -> None:
        widest = max((cell.sizeHint().width() for cell in self._cells), default=0)
        columns = max(1, self.width() // max(_CELL, widest))
        if columns == self._columns and not again:
            return
        self._columns = columns
        for index, cell in enumerate(self._cells):
            self._grid.addWidget(cell, index // columns, index % columns)
            cell.show()
        for index in range(self._grid.columnCount()):
            self._grid.setColumnStretch(index, int(index == columns))
        self._grid.setColumnStretch(columns, 1)

    def resizeEvent(self, event: Any) -> None:
        """Arrange as many cells in a row as fit."""
        super().resizeEvent(event)
        if self._cells:
            self._lay_out()


_BY_ITSELF: Final = "automatic"
_TICK: Final = tr("tick only the series to use in the table")
_CLICK: Final = tr("click the correct answer below")


class StudyView(QWidget):
    """The view of one study on the Import page.

    The signals `part_toggled` (selectors, bool), `phase_toggled` (number, bool) and `clock_chosen`
    report choices. `breasts_joined` carries whether two breasts become one case, and
    `breasts_parted` requests two cases. `remedy_chosen` carries a remedy for the problem, and
    `remedy_undone` requests to undo the last remedy.
    """

    breasts_parted = Signal()
    remedy_chosen = Signal(object)
    remedy_undone = Signal()

    breasts_joined = Signal(bool)
    part_toggled = Signal(object, bool)
    phase_toggled = Signal(int, bool)
    clock_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("import_study")
        self.model = SeriesModel()
        self.model.toggled.connect(self.part_toggled)
        self.table: SeriesTable = named(
            SeriesTable(),
            "import_series",
            tr("The series of the study; ticked series are used."),
        )
        self.table.setModel(self.model)
        self.place = label("import_place", tip=tr("Folder of this study's files."))
        set_level(self.place, "hint")
        self.problem = label("import_problem", tip=tr("Why this study cannot be imported."))
        set_level(self.problem, "error")
        self.join = checkbox(
            "import_join",
            tr("join the two breasts into one case"),
            tr("Puts both breasts on one voxel grid, with zeros between them."),
        )
        # Not `toggled`, which is also emitted when `show_choice` sets the box.
        self.join.clicked.connect(self.breasts_joined)
        self.part = button(
            "import_part",
            tr("Make two cases, left and right"),
            tr("Makes a case for each breast, ID_left and ID_right, with separate times."),
            self.breasts_parted.emit,
        )
        self.breasts = column(self.part, self.join)
        self.remedies = column()
        self.remedies.setObjectName("import_remedies")
        self.undo = button(
            "import_undo", tr("Undo"), tr("Undoes the last change."), self.remedy_undone.emit
        )
        self.phases_title = heading(tr("Phases to keep"))
        self.phases = PhaseStrip()
        self.phases.toggled.connect(self.phase_toggled)
        self.clock = combo_box(
            "import_clock", tr("DICOM attribute that determines the order of the phases.")
        )
        self.clock.activated.connect(lambda at: self.clock_chosen.emit(self.clock.itemData(at)))
        self.clock_line = row(QLabel(tr("Order by")), self.clock)
        self.clock_line.layout().setStretch(1, 1)
        self.reason = label("import_clock_reason", tip=tr("Why this attribute was chosen."))
        set_level(self.reason, "hint")
        self.warnings = label("import_warnings", tip=tr("Unusual properties of this study."))
        set_level(self.warnings, "warning")
        fill_column(
            self,
            self.place,
            self.table,
            self.problem,
            self.breasts,
            self.remedies,
            self.undo,
            self.clock_line,
            self.reason,
            self.phases_title,
            self.phases,
            self.warnings,
            spacing=6,
        )

    def show_choice(self, choice: StudyChoice) -> None:
        """Show the current choice for a study; images follow with `show_preview`."""
        exam = choice.found.exam
        times_s = None if exam is None else exam.times_s
        self.model.show_rows(choice.found.rows, times_s, choice.ticked_rows, choice.found.n_before)
        self.table.fit()
        self.show_problem(choice)
        self.join.setChecked(choice.joins)
        self.breasts.setVisible(choice.has_two_breasts)
        n_phases = 0 if exam is None else len(exam.stacks)
        names = [phase_name(index, choice.found.n_before) for index in range(n_phases)]
        times = ["?"] * n_phases if times_s is None else [f"{time:g} s" for time in times_s]
        self.phases.show_phases(names, times, choice.phases)
        self.phases_title.setVisible(n_phases > 0)
        self._fill_clocks(choice)
        self.reason.setText(clock_text(exam))
        self.reason.setVisible(bool(self.reason.text()))
        self._show_warnings(() if exam is None else exam.warnings)

    def show_place(self, text: str) -> None:
        """Show the folder of the study's files, and the reason for a neutral case id."""
        self.place.setText(text)
        self.place.setVisible(bool(text))

    def show_problem(self, choice: StudyChoice) -> None:
        """Show why the study cannot be imported, and the problems of its series."""
        wrong = [row.problem for row in choice.found.rows if row.problem]
        rows = [row for row in choice.found.rows if row.use is Use.ASKED]
        # Two breasts have separate controls.
        remedies = [remedy for remedy in choice.remedies if remedy.option != "sides"]
        can_tick = choice.found.exam is None and len(rows) > 1
        steps = tr(" – or ").join([_CLICK] * bool(remedies) + [_TICK] * can_tick)
        advice = tr("On this page: {steps}", steps=steps) if steps else ""
        self._offer_remedies(remedies, choice)
        messages = dict.fromkeys(filter(None, (choice.problem, *wrong, advice)))
        self.problem.setText("\n".join(map(sentence, messages)))
        self.problem.setVisible(bool(messages))

    def _offer_remedies(self, remedies: Sequence[Remedy], choice: StudyChoice) -> None:
        layout = self.remedies.layout()
        while layout.count():
            discard(layout.takeAt(0).widget())
        for index, remedy in enumerate(remedies):
            layout.addWidget(
                button(
                    f"import_remedy_{index}",
                    remedy_text(remedy),
                    tr("Analyses the study again with this setting."),
                    partial(self.remedy_chosen.emit, remedy),
                )
            )
        self.remedies.setVisible(bool(remedies))
        last = remedy_text(choice.applied[-1]) if choice.applied else tr("two cases")
        self.undo.setText(tr("Undo: {lower}{last}", lower=last[:1].lower(), last=last[1:]))
        self.undo.setVisible(bool(choice.applied or choice.side))

    def show_preview(self, choice: StudyChoice, preview: StudyPreview) -> None:
        """Show the images of a preview, and its warnings."""
        self.phases.show_pictures(preview.pictures)
        exam = choice.found.exam
        self._show_warnings(() if exam is None else exam.warnings)

    def _show_warnings(self, warnings: Sequence[CaseWarning]) -> None:
        self.warnings.setText(
            "\n".join(f"• {sentence(warning_text(warning))}" for warning in warnings)
        )
        self.warnings.setVisible(bool(warnings))

    def _fill_clocks(self, choice: StudyChoice) -> None:
        exam = choice.found.exam
        verdicts = {} if exam is None else {v.clock: v for v in exam.choice.verdicts}
        self.clock.clear()
        self.clock.addItem(_BY_ITSELF, None)
        for clock in Clock:
            self.clock.addItem(str(clock), clock)
            verdict = verdicts.get(clock)
            if verdict is not None:
                index = self.clock.count() - 1
                self.clock.setItemData(index, verdict.reason, Qt.ItemDataRole.ToolTipRole)
                self.clock.model().item(index).setEnabled(verdict.works)
        index = 0 if choice.clock is None else self.clock.findData(choice.clock)
        self.clock.setCurrentIndex(index)
        self.clock_line.setVisible(exam is None or len(exam.stacks) > 1)


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
    """A table model of the studies; `toggled` carries a row and whether the study is imported."""

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
        """Show the studies that were found, in a table if there are several."""
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
        """Show whether an import can start or, if not, what prevents it."""
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
        self.source = line_edit("import_source", tr("The source that is being read."))
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
