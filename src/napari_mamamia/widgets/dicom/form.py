"""The lower part of the Import page: target data set and case id."""

from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QFileDialog,
    QWidget,
)

from napari_mamamia.core.choices import Dates
from napari_mamamia.core.texts import tr
from napari_mamamia.services.dicom.check import IdState
from napari_mamamia.widgets.controls.controls import (
    button,
    fill_column,
    label,
    row,
    row_name,
    set_level,
)
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, line_edit

_NAMES: Final = (tr("Case id"), tr("Into"), tr("Dates"))
_DATES: Final = (
    (
        Dates.DROP,
        tr("leave out the exam's date"),
        tr("No date is kept, and times are seconds since the first phase."),
    ),
    (
        Dates.SHIFT,
        tr("shift the exam's date"),
        tr(
            "The date is shifted back by 1 to 365 days, by the same number for all exams of a "
            "patient."
        ),
    ),
)


class ImportForm(QWidget):
    """The form of an import; `changed` reports every change, and `id_edited` carries the new id."""

    changed = Signal()
    id_edited = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("import_form")
        self._own_target = False
        self.case_id = line_edit(
            "import_id",
            tr("The case id becomes the file name: do not enter a patient name."),
            tr("id of the case"),
        )
        self.case_id.textEdited.connect(lambda text: self.id_edited.emit(text.strip()))
        self.id_state = label("import_id_state", tip=tr("The problem of this id."))
        self.replace = checkbox(
            "import_replace",
            tr("replace the existing case"),
            tr(
                "Overwrites the images, times and patient file of the case, but keeps the masks in "
                "your workspace."
            ),
            on_toggle=lambda _on: self.changed.emit(),
        )
        self.target = line_edit(
            "import_target", tr("The data set in the MAMA-MIA layout to which the case is added.")
        )
        self.target.textEdited.connect(self._take_own_target)
        self.target.textChanged.connect(lambda _text: self.changed.emit())
        browse = button(
            "import_target_browse", "…", tr("Chooses another data set."), self._browse_folder
        )
        self.target_state = label("import_target_state", tip=tr("The problem of this folder."))
        self.dates = combo_box("import_dates", tr("What to do with the date of the exam."))
        for value, text, _tip in _DATES:
            self.dates.addItem(text, value)
        self.dates.currentIndexChanged.connect(lambda at: self.dates.setToolTip(_DATES[at][2]))
        self.kept = label("import_kept", tip=tr("Header information that the case keeps."))
        set_level(self.kept, "hint")
        fill_column(
            self,
            _make_line(tr("Case id"), self.case_id),
            self.id_state,
            self.replace,
            _make_line(tr("Into"), self.target, browse),
            self.target_state,
            _make_line(tr("Dates"), self.dates),
            self.kept,
            spacing=4,
        )
        self.show_check("", IdState(), any_is_there=False)

    @property
    def out(self) -> Path | None:
        """The chosen data set folder, or None if there is none."""
        text = self.target.text().strip()
        return Path(text).expanduser() if text else None

    @property
    def wanted_dates(self) -> Dates:
        """The treatment of dates during the import."""
        return Dates(self.dates.currentData())

    def offer_target(self, folder: Path) -> None:
        """Suggest a data set, unless the user chose one."""
        if not self._own_target:
            self.target.setText(str(folder))

    def show_id(self, case_id: str) -> None:
        """Show the case id of the displayed study."""
        if self.case_id.text().strip() != case_id:
            self.case_id.setText(case_id)

    def show_check(self, target_problem: str, state: IdState, *, any_is_there: bool) -> None:
        """Show problems with the target folder and with the case id of the displayed study."""
        self.target_state.setText(target_problem)
        self.target_state.setVisible(bool(target_problem))
        set_level(self.target_state, "error")
        there = tr(
            "The data set already has a case with this id: enter a different id, or replace the "
            "case."
        )
        text = state.problem or (there if state.is_there else "")
        self.id_state.setText(text)
        self.id_state.setVisible(bool(text))
        set_level(self.id_state, "error" if state.problem else "warning")
        self.replace.setVisible(any_is_there)

    def show_kept(self, text: str) -> None:
        """Show which header values are kept."""
        self.kept.setText(text)

    def _browse_folder(self) -> None:
        start = self.target.text() or str(Path.home())
        chosen = QFileDialog.getExistingDirectory(self, tr("Import into"), start)
        if chosen:
            self._own_target = True
            self.target.setText(chosen)

    def _take_own_target(self, text: str) -> None:
        self._own_target = bool(text.strip())


def _make_line(name: str, *widgets: QWidget) -> QWidget:
    line = row(row_name(name, _NAMES), *widgets)
    line.layout().setStretch(1, 1)
    return line
