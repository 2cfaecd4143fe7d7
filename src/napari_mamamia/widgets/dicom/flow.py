"""Page Import at work: a source is looked into, what was confirmed is imported and opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.services.dicom.dicom import ImportSummary
from napari_mamamia.services.dicom.look import LookedInto
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome, plain_text
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.dicom.choosing import Choosing
from napari_mamamia.widgets.dicom.page import ImportPage, ImportState
from napari_mamamia.widgets.dicom.text import result_text

_LOOK: Final = "import look"
_RUN: Final = "import run"


class ImportFlow(QObject):
    """Joins the page, the session and the jobs of an import.

    `shown_wanted` asks for the page, `left` for the page before. `imported` carries the folder of
    the DICOM files where one study of a folder became a case, None otherwise.
    """

    shown_wanted = Signal()
    left = Signal()
    imported = Signal(object)
    state_changed = Signal()

    def __init__(
        self,
        page: ImportPage,
        session: Session,
        open_data_set: Callable[[Path, str | None], None],
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._open = open_data_set
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self.choosing = Choosing(page, jobs, services, notifier)
        self.choosing.setParent(self)
        page.source_wanted.connect(self.look)
        page.import_wanted.connect(self._import)
        page.open_wanted.connect(self._open_as_it_is)
        page.cancel_wanted.connect(self._cancel)
        page.table_wanted.connect(self.choosing.show)
        page.closed.connect(self._leave)

    @property
    def is_begun(self) -> bool:
        """Whether something is looked into, found or imported on the page."""
        return self._page.state is not ImportState.IDLE

    def look(self, source: Path) -> None:
        """Show what is in a folder or zip; the one that is being looked into goes on."""
        self.shown_wanted.emit()
        if self._jobs.is_running(_RUN):
            self._notifier.hint("An import is running: wait for it, or stop it first.")
            return
        if self._jobs.is_running(_LOOK) and self._page.source.text() == str(source):
            return
        self.choosing.forget()

        def done(outcome: Outcome[LookedInto]) -> None:
            if isinstance(outcome, Finished):
                self._take(outcome.result)
            elif isinstance(outcome, Failed):
                self._page.show_idle(plain_text(outcome.error), "error")
            else:
                self._page.show_idle("Stopped: nothing was imported.")
            self.state_changed.emit()

        self._jobs.start(
            _LOOK,
            f"Looking into {source.name}",
            lambda: self._services.imports.look(source),
            done,
            on_progress=self._page.show_progress,
        )
        self._page.show_looking(source)
        self.state_changed.emit()

    def close(self) -> None:
        """Let go of what was unpacked, because the window closes."""
        self._cancel()
        self.choosing.forget()

    def _take(self, looked: LookedInto) -> None:
        opened = self._session.opened
        recent = self._services.load_preferences().recent
        data_set = None if opened is None else opened.data_set
        self._page.form.offer_target(self._services.imports.default_target(data_set, recent))
        self.choosing.take(looked)

    # ----------------------------------------------------------------- import

    def _import(self) -> None:
        out, wanted = self._page.form.out, self.choosing.wanted()
        if out is None or not wanted:
            return

        def done(outcome: Outcome[ImportSummary]) -> None:
            if isinstance(outcome, Finished):
                self._finish(outcome.result, out)
            elif isinstance(outcome, Failed):
                self.choosing.show()
                self._page.show_failed(f"Nothing was imported: {plain_text(outcome.error)}")
            else:
                self.choosing.show()
                self._page.show_failed("Stopped: cases that were finished are there, none is half.")
            self.state_changed.emit()

        self._jobs.start(
            _RUN,
            "Importing",
            lambda: self._services.imports.run(wanted, out),
            done,
            on_progress=self._page.show_progress,
        )
        self._page.show_importing()

    def _finish(self, summary: ImportSummary, out: Path) -> None:
        text, level = result_text(summary, self.choosing.refused(), out)
        self._page.show_done(text, level)
        if not summary.imported:
            return
        looked = self.choosing.looked
        is_whole = looked is not None and looked.source == looked.folder
        is_one = is_whole and len(self.choosing.choices) == 1
        self.imported.emit(looked.source if looked is not None and is_one else None)
        self._open(out, summary.imported[0].case_id)
        if level == "hint":
            self._notifier.hint(text)
            self._go_back()

    def _open_as_it_is(self) -> None:
        if self.choosing.choices:
            folder = self.choosing.choices[0].found.folder
            self._go_back()
            self._open(folder, None)

    # ------------------------------------------------------------------ ending

    def _cancel(self) -> None:
        for lane in (_LOOK, _RUN):
            self._jobs.cancel(lane)

    def _leave(self) -> None:
        self._cancel()
        self._go_back()

    def _go_back(self) -> None:
        self.choosing.forget()
        self._page.show_idle()
        self.state_changed.emit()
        self.left.emit()
