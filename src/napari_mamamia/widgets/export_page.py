"""Page Export: which masks are written where, and that they were read back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qtpy.QtCore import QUrl, Signal
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QCheckBox, QComboBox, QFileDialog, QLabel, QLineEdit

from napari_mamamia.widgets.controls import button, label, named, row
from napari_mamamia.widgets.page import Page

__all__ = ["ExportPage", "ExportRequest", "MaskSet"]


@dataclass(frozen=True, slots=True)
class MaskSet:
    """A folder of masks that can be exported: what it is called, how many cases it holds."""

    title: str
    folder: Path
    n_cases: int
    default_out: Path


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What the page asks for."""

    masks: Path
    out: Path
    replace: bool


class ExportPage(Page):
    """`export_wanted` carries an `ExportRequest`."""

    export_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__("export")
        self._done: Path | None = None
        self.sets: QComboBox = named(QComboBox(), "export_sets", "Which masks are written")
        self.sets.currentIndexChanged.connect(self._show_choice)
        self.out: QLineEdit = named(QLineEdit(), "export_out", "Folder to write to")
        self.out.textChanged.connect(self._describe)
        browse = button("export_browse", "…", "Choose another folder", self._browse)
        self.replace: QCheckBox = named(
            QCheckBox("replace files of an earlier export"),
            "export_replace",
            "Files of the same names in that folder are replaced; others stay",
        )
        self.what = label("export_what", tip="What will be written, and how")
        self.start = button(
            "export_start", "Export", "Writes and reads back every file", self._ask, primary=True
        )
        self.result = label("export_result", tip="What the last export wrote")
        self.open_folder = button(
            "export_open", "Open the folder", "Shows the exported files", self._open_folder
        )
        for part in (
            row(QLabel("Masks"), self.sets),
            row(QLabel("To"), self.out, browse),
            self.replace,
            self.what,
            self.start,
            self.result,
            self.open_folder,
        ):
            self.body.addWidget(part)
        self.body.addStretch()
        self.open_folder.hide()

    # ------------------------------------------------------------- for the dock

    def show_sets(self, sets: Sequence[MaskSet]) -> None:
        """Offer the masks that the workspace holds."""
        chosen = self.sets.currentData()
        before = chosen.folder if chosen is not None else None
        self.sets.blockSignals(True)
        self.sets.clear()
        for found in sets:
            self.sets.addItem(f"{found.title} ({found.n_cases})", found)
            if found.folder == before:
                self.sets.setCurrentIndex(self.sets.count() - 1)
        self.sets.blockSignals(False)
        if before is None or chosen not in sets:
            self._show_choice()
        self._describe()

    def show_result(self, text: str, folder: Path | None) -> None:
        """Show what was written; `folder` where there is something to look at."""
        self.result.setText(text)
        self._done = folder
        self.open_folder.setVisible(folder is not None)

    def set_running(self, running: bool) -> None:
        """Keep the button from being pressed twice."""
        self.start.setEnabled(not running)

    # -------------------------------------------------------------------- inner

    def _show_choice(self, _at: int = 0) -> None:
        chosen: MaskSet | None = self.sets.currentData()
        if chosen is not None:
            self.out.setText(str(chosen.default_out))
            self.out.setCursorPosition(len(self.out.text()))

    def _describe(self, _text: str = "") -> None:
        chosen: MaskSet | None = self.sets.currentData()
        if chosen is None:
            return
        self.what.setText(
            f"{chosen.n_cases} mask(s) as ID.nii.gz (uint8, 0 and 1, the exact geometry of each "
            "case), ID.json (who made it, from what) and manifest.json (SHA-256 of every file)."
        )

    def _browse(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Export to", self.out.text())
        if chosen:
            self.out.setText(chosen)

    def _ask(self) -> None:
        chosen: MaskSet | None = self.sets.currentData()
        out = self.out.text().strip()
        if chosen is not None and out:
            wanted = ExportRequest(chosen.folder, Path(out), self.replace.isChecked())
            self.export_wanted.emit(wanted)

    def _open_folder(self) -> None:
        if self._done is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._done)))
