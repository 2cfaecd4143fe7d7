"""Drops of DICOM, studies, rankings and data sets on the window; napari handles other drops.

Otherwise napari asks for each folder which reader plugin to use.
"""

from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, Qt, Signal
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.features import find_opener
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.services.case.sources import SourceKind
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.blinding import NOTHING_ELSE
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.cases.flow import CasesFlow
from napari_mamamia.widgets.controls.drops import dropped_paths
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_FOR_NAPARI: Final = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier
"""Modifiers with which napari handles a drop: Alt to choose a reader, Shift to stack."""


class Dropping(WindowPart):
    """A handler of drops on the dock, and on napari's view while the dock exists.

    The signal `cases_wanted` requests the page with the cases of a dropped data set;
    `dicom_dropped` carries a folder with DICOM files. Paths that a feature opens are passed to the
    feature.
    """

    cases_wanted = Signal()
    dicom_dropped = Signal(object)

    def __init__(self, context: WindowContext, panel: QWidget, cases: CasesFlow) -> None:
        super().__init__(context)
        self._parts: list[QWidget] = []
        self._panel = panel
        self._cases = cases
        self.watch_part(panel)

    def watch_part(self, part: QWidget) -> None:
        """Handle drops on a widget of this program in the window."""
        self._parts.append(part)
        part.setAcceptDrops(True)
        part.installEventFilter(self)

    def watch_view(self) -> None:
        """Watch the viewer's main view, if it has a window; may be called again."""
        view = main_view(self._scene.viewer)
        if view is not None:
            view.installEventFilter(self)

    def take(self, paths: list[Path]) -> bool:
        """Open DICOM, a study, a ranking or a data set; return False for any other paths."""
        if not paths:
            return False
        is_one = len(paths) == 1
        try:
            opener = find_opener(paths[0]) if is_one else None
        except (
            SaveError
        ) as error:  # The share does not respond, so it is not read for anything else.
            self._notifier.warn(plain_text(error))
            return True
        if opener is not None:
            opener.open(self._panel, paths[0])
            return True
        kind = self._services.recognise(paths[0]) if is_one else None
        if kind not in (None, LayoutKind.SINGLE_FILE, LayoutKind.DICOM):
            self._open_path(paths[0])
            return True
        source = None if kind is LayoutKind.SINGLE_FILE else self._services.imports.source_of(paths)
        if source is None:
            return False
        self.dicom_dropped.emit(source)
        return True

    def take_or_open(self, paths: list[Path]) -> None:
        """Handle a drop on the dock; also try to open unknown paths, so that an error is shown."""
        if not self.take(paths) and paths:
            self._open_path(paths[0])

    def open_sources(self, paths: list[Path], case_id: str | None = None) -> None:
        """Open the sources that a user chose; a DICOM folder is opened without an import."""
        kind, path = self._services.find_source(paths)
        if kind is SourceKind.VOLUMES:
            self._jobs.start(
                "list",
                tr("Opening {name}", name=path.name),
                lambda: self._services.link_volumes(paths),
                lambda linked: self._open_path(*linked),
            )
        elif kind in (SourceKind.DATA_SET, SourceKind.DICOM):
            self._open_path(path, case_id)
        else:
            self.take_or_open([path])

    def _open_path(self, path: Path, case_id: str | None = None) -> None:
        self.cases_wanted.emit()
        self._cases.open_data_set(path, case_id)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle a drop before napari asks for a reader, including any drop on the panel."""
        if any(watched is widget for widget in self._parts):
            return self._take_on_part(event)
        if event.type() != QEvent.Type.Drop:
            return False
        is_blind = self._session.blinding.is_blind
        if QGuiApplication.keyboardModifiers() & _FOR_NAPARI and not is_blind:
            return False
        if not self.take(dropped_paths(event)):
            if not is_blind:
                return False
            self._notifier.warn(NOTHING_ELSE)
        event.acceptProposedAction()
        return True

    def _take_on_part(self, event: Any) -> bool:
        if event.type() not in (QEvent.Type.DragEnter, QEvent.Type.Drop):
            return False
        paths = dropped_paths(event)
        if paths:
            event.acceptProposedAction()
        if event.type() == QEvent.Type.Drop:
            self.take_or_open(paths)
        return True
