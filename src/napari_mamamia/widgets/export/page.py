"""The Export page: choose masks, folder and options, and show the verified result."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt, QUrl, Signal
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import (
    QFileDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.services.export.export import ExportTarget, TargetState
from napari_mamamia.widgets.controls.controls import (
    button,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.targets import ROW_PADDING, CheckBox
from napari_mamamia.widgets.export.options import ExportOptions
from napari_mamamia.widgets.export.selection import ExportRequest, MaskSet
from napari_mamamia.widgets.export.text import what_is_written

_MOST_ROWS = 5
_BLOCKED = frozenset({TargetState.READ_ONLY, TargetState.NO_FOLDER})
_TAKEN = frozenset({TargetState.BUNDLE, TargetState.CUT_OFF, TargetState.TAKEN})


class ExportPage(Page):
    """The Export page.

    The signal `export_wanted` carries an `ExportRequest`; `target_asked` carries a folder to check.
    """

    export_wanted = Signal(object)
    target_asked = Signal(object)

    def __init__(self) -> None:
        super().__init__("export")
        self._done: Path | None = None
        self._target: ExportTarget | None = None
        self._running = False
        self._own_out = False
        self._own_choice = False
        self.sets: QListWidget = named(
            QListWidget(),
            "export_sets",
            tr("Masks to write; several sets are kept separate by name"),
        )
        self.sets.itemChanged.connect(lambda _item: self._take_own_choice())
        self.options = ExportOptions()
        self.options.changed.connect(self._describe_export)
        self.out: QLineEdit = named(QLineEdit(), "export_out", tr("Folder to write to"))
        self.out.textEdited.connect(self._take_own_out)
        self.out.textChanged.connect(self._ask_target)
        browse = tool_button(
            "export_browse", "…", tr("Chooses another folder."), self._browse_folder
        )
        browse.setProperty("framed", True)
        self.target = label("export_target", tip=tr("Content of that folder"))
        self.replace: CheckBox = named(
            CheckBox(tr("replace files of an earlier export")),
            "export_replace",
            tr("Replaces files with the same names in that folder, and keeps all other files."),
        )
        self.replace.toggled.connect(lambda _on: self._show_target())
        self.what = label("export_what", tip=tr("Files to be written, and options"))
        self.start = button(
            "export_start",
            tr("Export masks"),
            tr("Writes and verifies every file."),
            self._request_export,
            primary=True,
        )
        self.result = label("export_result", tip=tr("Result of the last export"))
        self.open_folder = button(
            "export_open", tr("Open the folder"), tr("Shows the exported files."), self._open_folder
        )
        self.add_form(
            QLabel(tr("Masks")),
            self.sets,
            self.options,
            row(QLabel(tr("Folder")), self.out, browse),
            self.what,
        )
        for part in (self.target, self.replace, self.start):
            self.body.addWidget(part)
        self.add_answer(self.open_folder, self.result)
        self.body.addStretch()
        self.open_folder.hide()
        self.replace.hide()

    # ------------------------------------------------------------- for the dock

    @property
    def _row_height(self) -> int:
        return int(self.sets.fontMetrics().height()) + 2 * ROW_PADDING

    def show_sets(self, sets: Sequence[MaskSet], *, is_dicom: bool = False) -> None:
        """List the workspace's mask sets, keeping the user's choices.

        The first set is checked if a reader made it. An unaccepted prediction is exported only if
        the user chooses it.
        """
        before = {one.folder for one in self.chosen()} if self._own_choice else set()
        self.sets.blockSignals(True)
        self.sets.clear()
        for k, mask_set in enumerate(sets):
            item = QListWidgetItem(mask_set.text)
            item.setData(Qt.ItemDataRole.UserRole, mask_set)
            item.setToolTip(str(mask_set.folder))
            is_first = k == 0 and not before and not mask_set.is_prediction
            checked = mask_set.folder in before or is_first
            item.setCheckState(Qt.CheckState.Checked if checked else Qt.CheckState.Unchecked)
            self.sets.addItem(item)
        self.sets.blockSignals(False)
        self._fit_sets()
        self.options.show_kind(is_dicom=is_dicom)
        self._show_choice()

    def chosen(self) -> tuple[MaskSet, ...]:
        """Return the checked sets, in the order shown."""
        items = (self.sets.item(k) for k in range(self.sets.count()))
        return tuple(
            item.data(Qt.ItemDataRole.UserRole)
            for item in items
            if item.checkState() == Qt.CheckState.Checked
        )

    def show_target(self, target: ExportTarget) -> None:
        """Show the state of the folder, ignoring a result for any other folder."""
        if str(target.folder) == self.out.text().strip():
            self._target = target
            self._show_target()

    def show_result(self, text: str, folder: Path | None, level: str = "hint") -> None:
        """Show the result, with a button that opens `folder` if there are files to open."""
        set_level(self.result, level)
        self.result.setText(text)
        self._done = folder
        self.open_folder.setVisible(folder is not None)
        self.show_answer(bool(text))

    def set_running(self, running: bool) -> None:
        """Disable the button while an export runs."""
        self._running = running
        self._show_target()

    def look_again(self) -> None:
        """Check the folder again, for example after an export."""
        self._ask_target()

    # -------------------------------------------------------------------- inner

    def showEvent(self, event: Any) -> None:
        """Fit the list of masks to the current font size."""
        super().showEvent(event)
        self._fit_sets()

    def _fit_sets(self) -> None:
        rows = min(max(self.sets.count(), 1), _MOST_ROWS)
        self.sets.setFixedHeight(rows * self._row_height + 6)

    def _take_own_choice(self) -> None:
        self._own_choice = True
        self._show_choice()

    def _show_choice(self) -> None:
        chosen = self.chosen()
        if chosen and not self._own_out:
            folder = chosen[0].default_out
            self.out.setText(str(folder if len(chosen) == 1 else folder.with_name("masks")))
            self.out.setCursorPosition(len(self.out.text()))
        self.options.show_sets(len(chosen), sum(one.n_cases for one in chosen))
        self._describe_export()

    def _describe_export(self) -> None:
        self.what.setText(what_is_written(self.options.selection()))
        self._show_target()

    def _take_own_out(self, _text: str) -> None:
        self._own_out = True

    def _ask_target(self, _text: str = "") -> None:
        self._target = None
        self._show_target()
        if self.out.text().strip():
            self.target_asked.emit(Path(self.out.text().strip()))

    def _show_target(self) -> None:
        state = TargetState.FREE if self._target is None else self._target.state
        taken = state in _TAKEN
        self.replace.setVisible(taken)
        is_silent = self._target is None or state is TargetState.FREE
        is_own = self._target is not None and self._target.folder == self._done
        text = "" if is_silent or is_own or self._target is None else self._target.text
        problem = self.options.problem() if self.chosen() else tr("Choose the masks first.")
        text = problem or text
        self.target.setText(text)
        self.target.setVisible(bool(text))
        set_level(self.target, "error" if state in _BLOCKED else "warning")
        blocked = state in _BLOCKED or (taken and not self.replace.isChecked())
        ready = bool(self.out.text().strip()) and not problem
        self.start.setEnabled(ready and not blocked and not self._running)

    def _browse_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, tr("Export to"), self.out.text())
        if chosen:
            self._own_out = True
            self.out.setText(chosen)

    def _request_export(self) -> None:
        request = ExportRequest(
            self.chosen(),
            Path(self.out.text().strip()),
            self.replace.isVisible() and self.replace.isChecked(),
            self.options.selection().settings,
        )
        self.export_wanted.emit(request)

    def _open_folder(self) -> None:
        if self._done is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._done)))
