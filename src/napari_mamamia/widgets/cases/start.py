"""The start view of the Cases page while no data set is open: sources and recent data sets."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog, QGridLayout, QPushButton, QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.controls import button, discard, heading, label

_MOST_RECENT: Final = 5


class StartPage(QWidget):
    """Buttons that open exams, a data set, a review study, the demo or a recent data set.

    The signal `path_chosen` carries a folder or file; `demo_wanted` carries no value.
    """

    path_chosen = Signal(object)
    demo_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._lines = QGridLayout()
        self._lines.setColumnStretch(1, 1)
        self._recent: list[QWidget] = []
        self._list = QVBoxLayout()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(self._lines)
        layout.addLayout(self._list)
        self._add_line(
            *("start_folder", tr("Open folder…")),
            tr("A DICOM exam, a patient's folder or a data set"),
            tr("Opens a folder without changing its files."),
            self._browse_folder,
            primary=True,
        )
        self._add_line(
            *("start_zip", tr("Open zip…")),
            tr("DICOM files in a zip file, which are imported as a case"),
            tr("Shows the exams in a zip file for import."),
            self._browse_zip,
        )
        self._add_line(
            *("start_study", tr("Open review study…")),
            tr("A study with several readers"),
            tr("Opens the folder of a review study."),
            self._browse_study,
        )
        self._add_line(
            *("start_demo", tr("Open demo")),
            tr("12 phantom cases with known tumours"),
            tr("Creates phantom cases in your documents folder, or opens existing phantom cases."),
            self.demo_wanted.emit,
        )

    def set_recent(self, folders: Sequence[Path]) -> None:
        """List the data sets that were opened before, the most recent first."""
        for widget in self._recent:
            discard(widget)
        self._recent = [heading(tr("Recent"))] if folders else []
        for index, folder in enumerate(folders[:_MOST_RECENT]):
            self._recent.append(self._make_recent(index, folder))
        for widget in self._recent:
            self._list.addWidget(widget)

    def _make_recent(self, index: int, folder: Path) -> QPushButton:
        recent = button(
            f"start_recent_{index}",
            f"…/{folder.parent.name}/{folder.name}",
            str(folder),
            lambda: self.path_chosen.emit(folder),
        )
        recent.setStyleSheet("text-align: left")
        return recent

    def _add_line(
        self,
        name: str,
        text: str,
        content: str,
        tip: str,
        on_click: Callable[[], object],
        *,
        primary: bool = False,
    ) -> None:
        line = self._lines.rowCount()
        self._lines.addWidget(button(name, text, tip, on_click, primary=primary), line, 0)
        self._lines.addWidget(label(f"{name}_content", content), line, 1)

    def _browse_folder(self) -> None:
        self._emit(QFileDialog.getExistingDirectory(self, tr("Open folder"), str(Path.home())))

    def _browse_study(self) -> None:
        self._emit(
            QFileDialog.getExistingDirectory(self, tr("Open review study"), str(Path.home()))
        )

    def _browse_zip(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self, tr("Open zip"), str(Path.home()), tr("Zip files (*.zip)")
        )
        self._emit(chosen)

    def _emit(self, chosen: str) -> None:
        if chosen:
            self.path_chosen.emit(Path(chosen))
