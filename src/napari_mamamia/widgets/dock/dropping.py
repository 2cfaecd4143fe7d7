"""What is dropped on the window: DICOM is looked into, a data set is opened, the rest is napari's.

Without this, napari asks for each folder which of its readers shall take it.
"""

from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, Qt, Signal
from qtpy.QtGui import QGuiApplication

from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.cases.flow import CasesFlow
from napari_mamamia.widgets.controls.drops import dropped_paths
from napari_mamamia.widgets.dicom.flow import ImportFlow

_FOR_NAPARI: Final = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier
"""With Alt napari asks which reader, with Shift it stacks: the user means napari then."""


class Dropping(QObject):
    """Takes drops for the dock, and for napari's view while the dock is there.

    `cases_wanted` asks for the page on which the cases of a dropped data set are listed.
    """

    cases_wanted = Signal()

    def __init__(self, importing: ImportFlow, cases: CasesFlow, services: Services) -> None:
        super().__init__()
        self._importing = importing
        self._cases = cases
        self._services = services

    def watch(self, viewer: Any) -> None:
        """Watch the viewer's own view, if it has a window by now; again does no harm."""
        view = main_view(viewer)
        if view is not None:
            view.installEventFilter(self)

    def take(self, paths: list[Path]) -> bool:
        """Look into DICOM or open a data set; False where `paths` are neither."""
        if not paths:
            return False
        is_one = len(paths) == 1
        kind = self._services.recognise(paths[0]) if is_one else None
        if kind not in (None, LayoutKind.SINGLE_FILE, LayoutKind.DICOM):
            self._open(paths[0])
            return True
        source = None if kind is LayoutKind.SINGLE_FILE else self._services.imports.source_of(paths)
        if source is None:
            return False
        self._importing.look(source)
        return True

    def take_or_open(self, paths: list[Path]) -> None:
        """Take a drop on the dock; what is not known is opened, so that its refusal is said."""
        if not self.take(paths) and paths:
            self._open(paths[0])

    def _open(self, path: Path) -> None:
        self.cases_wanted.emit()
        self._cases.open_data_set(path)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Take what is ours before napari asks which reader shall."""
        if event.type() != QEvent.Type.Drop:
            return False
        if QGuiApplication.keyboardModifiers() & _FOR_NAPARI:
            return False
        if not self.take(dropped_paths(event)):
            return False
        event.acceptProposedAction()
        return True
