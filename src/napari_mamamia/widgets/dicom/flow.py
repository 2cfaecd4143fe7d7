"""Controller of the Import page: inspect a source, import studies, open the result."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.texts import tr
from napari_mamamia.services.dicom.dicom import ImportSummary
from napari_mamamia.services.dicom.inspection import InspectedStudies
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.dicom.choosing import Choosing
from napari_mamamia.widgets.dicom.page import ImportPage, ImportState
from napari_mamamia.widgets.dicom.text import result_text
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LOOK: Final = "import look"
_RUN: Final = "import run"
_STOPPED: Final = tr("Stopped: finished cases are kept, and no case is incomplete.")


class ImportFlow(WindowPart):
    """Connects the page, the session and the jobs of an import.

    The signal `shown_wanted` requests this page, and `left` the previous page.
    """

    shown_wanted = Signal()
    left = Signal()
    state_changed = Signal()

    def __init__(
        self,
        context: WindowContext,
        page: ImportPage,
        open_data_set: Callable[[Path, str | None], None],
    ) -> None:
        super().__init__(context)
        self.page = page
        self._open = open_data_set
        self._imported: tuple[Path, str] | None = None
        self.choosing = Choosing(context, page)
        page.source_wanted.connect(self.look)
        page.import_wanted.connect(self._import_choices)
        page.open_wanted.connect(self._open_as_it_is)
        page.cancel_wanted.connect(self._stop_jobs)
        page.table_wanted.connect(self.choosing.show)
        page.closed.connect(self._leave_page)

    @property
    def is_begun(self) -> bool:
        """Whether a source is being inspected, shown or imported."""
        return self.page.state is not ImportState.IDLE

    def look(self, source: Path) -> None:
        """Show the contents of a folder or zip file, unless it is already being inspected."""
        self.shown_wanted.emit()
        if self._jobs.is_running(_RUN):
            self._notifier.hint(tr("An import is running: wait for it, or stop it first."))
            return
        if self._jobs.is_running(_LOOK) and self.page.source.text() == str(source):
            return
        self.choosing.forget()

        self._jobs.start(
            _LOOK,
            tr("Reading {name}", name=source.name),
            lambda: self._services.imports.look(source),
            self._take_studies,
            failed=lambda error: self.page.show_idle(plain_text(error), "error"),
            stopped=lambda: self.page.show_idle(tr("Stopped: nothing was imported.")),
            ended=self.state_changed.emit,
            on_progress=self.page.show_progress,
        )
        self.page.show_looking(source)
        self.state_changed.emit()

    def close(self) -> None:
        """Remove unpacked files when the window closes."""
        self._cancel_jobs()
        self.choosing.forget()

    def _take_studies(self, looked: InspectedStudies) -> None:
        opened = self._session.opened
        recent = self._services.load_preferences().recent
        data_set = None if opened is None else opened.data_set
        self.page.form.offer_target(self._services.imports.default_target(data_set, recent))
        self.choosing.take(looked)

    # ----------------------------------------------------------------- import

    def _import_choices(self) -> None:
        out, choices = self.page.form.out, self.choosing.wanted()
        if out is None or not choices:
            return

        self._jobs.start(
            _RUN,
            "Importing",
            lambda: self._services.imports.run(choices, out),
            lambda summary: self._finish_import(summary, out),
            failed=lambda error: self._show_why(
                tr("Nothing was imported: {plain_text}", plain_text=plain_text(error))
            ),
            stopped=lambda: self._show_why(_STOPPED),
            ended=self.state_changed.emit,
            on_progress=self.page.show_progress,
        )
        self.page.show_importing()

    def _show_why(self, text: str) -> None:
        self.choosing.show()
        self.page.show_failed(text)

    def _finish_import(self, summary: ImportSummary, out: Path) -> None:
        text, level = result_text(summary, self.choosing.refused(), out)
        self.page.show_done(text, level)
        if not summary.imported:
            return
        looked = self.choosing.looked
        is_whole = looked is not None and looked.source == looked.folder
        is_one = is_whole and len(self.choosing.choices) == 1
        if looked is not None and is_one:
            self._session.set_dicom_study(looked.source)
        self._imported = (out, summary.imported[0].case_id)
        self._open(*self._imported)
        if level == "hint":
            self._notifier.hint(text)
            self._go_back()

    def _open_as_it_is(self) -> None:
        if self.choosing.choices:
            # Going back discards the choices.
            folder = self.choosing.choices[0].found.folder
            self._go_back()
            self._open(folder, None)

    # ------------------------------------------------------------------ ending

    def _stop_jobs(self) -> None:
        for lane in (_LOOK, _RUN):
            self._jobs.stop(lane)

    def _cancel_jobs(self) -> None:
        for lane in (_LOOK, _RUN):
            self._jobs.cancel(lane)

    def _leave_page(self) -> None:
        self._cancel_jobs()
        self._go_back()
        self._list_imported()

    def _list_imported(self) -> None:
        imported, self._imported = self._imported, None
        if imported is None or self._jobs.is_running("list"):
            return
        (out, case_id), opened = imported, self._session.opened
        is_listed = opened is not None and opened.data_set.root == out
        if not is_listed or case_id not in self._session.rows:
            self._open(out, None)

    def _go_back(self) -> None:
        self.choosing.forget()
        self.page.show_idle()
        self.state_changed.emit()
        self.left.emit()
