"""A study on the Import page: its table, problem, phases and their order."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QComboBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import Remedy
from napari_mamamia.core.records import CaseWarning
from napari_mamamia.core.texts import tr
from napari_mamamia.io.dicom.roles import Use
from napari_mamamia.services.dicom.preview import SlicePicture, StudyPreview
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    discard,
    heading,
    label,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.grey_pixmap import slice_pixmap
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.dicom.choice import StudyChoice
from napari_mamamia.widgets.dicom.series import SeriesModel, SeriesTable
from napari_mamamia.widgets.dicom.text import (
    clock_text,
    remedy_text,
    sentence,
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
        box: CheckBox = named(
            CheckBox(f"{name} · {time}"),
            f"import_phase_{index}",
            tr("Makes {phase} part of the case.", phase=name),
        )
        box.setChecked(is_kept)
        box.toggled.connect(lambda on: self.toggled.emit(index, on))
        cell = QWidget(self)
        layout = QVBoxLayout(cell)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(picture)
        layout.addWidget(box)
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
    """The view of one study.

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
        self.join: CheckBox = named(
            CheckBox(tr("join the two breasts into one case")),
            "import_join",
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
        self.clock: QComboBox = named(
            QComboBox(),
            "import_clock",
            tr("DICOM attribute that determines the order of the phases."),
        )
        self.clock.activated.connect(lambda at: self.clock_chosen.emit(self.clock.itemData(at)))
        self.clock_line = row(QLabel(tr("Order by")), self.clock)
        self.clock_line.layout().setStretch(1, 1)
        self.reason = label("import_clock_reason", tip=tr("Why this attribute was chosen."))
        set_level(self.reason, "hint")
        self.warnings = label("import_warnings", tip=tr("Unusual properties of this study."))
        set_level(self.warnings, "warning")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        for part in (
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
        ):
            layout.addWidget(part)

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
