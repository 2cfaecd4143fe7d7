"""List a data set with its cases and masks, and open one of the cases."""

import logging
from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import (
    HiddenError,
    LayoutChoiceError,
    SaveError,
    UnknownLayoutError,
)
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.workspace.preferences import remember_recent, remember_workspace
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_log = logging.getLogger(__name__)

_ONE_DATA_SET: Final = tr(
    "Blinded reading: this window shows only the data set of the open case. To open another data "
    "set, start another window"
)


class Listing(WindowPart):
    """A component that lists a data set for the current reader and opens its cases.

    The signal `layout_unknown` carries a folder with an unknown or uncertain layout, and the error;
    `dicom_refused` carries a DICOM folder that cannot be opened without the choices of an import.
    `opening_changed` carries the name of the data set or case that is being opened, or "" at the
    end.
    """

    layout_unknown = Signal(object, object)
    dicom_refused = Signal(object)
    opening_changed = Signal(str)

    def __init__(self, context: WindowContext, opening: Opening) -> None:
        super().__init__(context)
        self._opening = opening
        self._session.reader_changed.connect(self._on_reader)

    def open_data_set(
        self,
        path: Path,
        then_case: str | None = None,
        workspace: Path | None = None,
        *,
        remembers: bool = True,
    ) -> None:
        """List the cases of a data set, then open `then_case`, or the case if there is only one.

        `remembers` says whether the data set, and the `workspace` if given, are stored in the
        preferences.
        """
        hidden = self._session.blinding

        def show(listed: tuple[OpenDataSet, tuple[CaseRow, ...]]) -> None:
            if self._session.blinding == hidden:
                self._show_list(*listed, then_case)
            else:
                self.open_data_set(path, then_case, workspace, remembers=remembers)

        self._jobs.start(
            "list",
            tr("Opening {name}", name=path.name or path),
            lambda: self._list_cases(path, workspace, remembers=remembers),
            show,
            failed=lambda error: self._on_failure(path, error),
            ended=self._report_end,
        )
        self.opening_changed.emit(path.name or str(path))
        self._opening.warm_up()

    def _report_end(self) -> None:
        if not self._jobs.is_running("list"):  # A newer request may have replaced this request.
            self.opening_changed.emit("")

    def _on_failure(self, path: Path, error: Exception) -> None:
        if isinstance(error, LayoutChoiceError | UnknownLayoutError) and not self._session.study:
            self.layout_unknown.emit(path, error)
        elif self._can_be_imported(path):
            self.dicom_refused.emit(path)
        else:
            self._notifier.fail(tr("Opening {name}", name=path.name or path), error)

    def _can_be_imported(self, path: Path) -> bool:
        is_free = not self._session.blinding.is_blind and not self._session.study
        return is_free and self._services.recognise(path) is LayoutKind.DICOM

    def change_workspace(self, folder: Path) -> None:
        """Set another folder in which future masks of this data set are stored."""
        opened = self._session.opened
        if opened is not None:
            self.open_data_set(opened.data_set.root, self._session.listed_id or None, folder)

    def _list_cases(
        self, path: Path, workspace: Path | None, *, remembers: bool
    ) -> tuple[OpenDataSet, tuple[CaseRow, ...]]:
        session = self._session
        read_now = session.context
        opened = self._services.open_data_set(
            path, workspace, blinding=session.blinding, reader=session.reader, names=session.names
        )
        # A mask from a mask folder can be opened as the image of a case.
        is_other = read_now is not None and opened.data_set.root != read_now.opened.data_set.root
        if session.blinding.is_blind and is_other:
            raise HiddenError(_ONE_DATA_SET)
        rows = self._services.case_rows(opened)
        if remembers:
            self._remember_data_set(opened.data_set.root, workspace)
        return opened, rows

    def _remember_data_set(self, root: Path, workspace: Path | None) -> None:
        preferences = remember_recent(self._services.load_preferences(), root)
        if workspace is not None:
            preferences = remember_workspace(preferences, root, workspace)
        try:
            self._services.save_preferences(preferences)
        except SaveError as error:
            _log.warning("the recent data sets could not be stored: %s", error)

    def _show_list(
        self, opened: OpenDataSet, rows: tuple[CaseRow, ...], then_case: str | None
    ) -> None:
        self._jobs.cancel("open")  # These are the warnings of the previously listed data set.
        is_same_reader = opened.workspace.reader == self._session.reader
        self._session.set_data_set(opened.read_by(self._session.reader))
        self._session.set_rows(rows)
        if not is_same_reader:
            self.list_again()
        if opened.warnings:
            more = (
                tr(" (and {n_warnings} more)", n_warnings=len(opened.warnings) - 1)
                if len(opened.warnings) > 1
                else ""
            )
            self._notifier.warn(f"{opened.warnings[0]}{more}")
        if then_case is None and len(rows) == 1 and not rows[0].problems:
            then_case = rows[0].case_id
        if then_case is not None:
            self._opening.open_case(then_case)

    def _on_reader(self) -> None:
        # A listing in progress checks the reader.
        if not self._jobs.is_running("list"):
            self.list_again()

    def list_again(self) -> None:
        """List the masks again for a new reader name if other readers are hidden."""
        opened = self._session.opened
        if opened is None or not opened.workspace.blinding.hides(Hidden.OTHER_READERS):
            return
        list_cases = self._services.case_rows
        self._jobs.start(
            "list",
            tr("Listing your masks"),
            lambda: list_cases(opened),
            self._session.set_rows,
            still=lambda: self._session.opened is opened,
            shown=False,
        )
