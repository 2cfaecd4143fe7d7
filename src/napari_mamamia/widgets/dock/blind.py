"""Controller for blinded reading: header text, locked pages, and the recorded end of blinding."""

from qtpy.QtCore import Signal

from napari_mamamia.core.blinding import NOT_BLIND, Blinding
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.widgets.base.blinding import PAGES, why_hidden
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.dock.steps import Steps
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.page import RefinePage
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_ENDING = tr("Recording the end of the blinded reading")
_OF_STUDY = tr(
    "Hidden data stay hidden in a study window, because only the study's lead may change this."
)


class BlindFlow(WindowPart):
    """The controller for blinding.

    The signal `ended` is emitted after the end of a blinded reading has been recorded. The data set
    is then opened again, because the open data set contains none of the hidden data.
    """

    ended = Signal()

    def __init__(
        self,
        context: WindowContext,
        header: Header,
        pages: Steps,
        refine_page: RefinePage,
        listing: Listing,
        opening: Opening,
        editing: Editing,
        readers: Readers,
    ) -> None:
        super().__init__(context)
        self._header = header
        self._pages = pages
        self._refine_page = refine_page
        self._listing = listing
        self._opening = opening
        self._editing = editing
        self._readers = readers
        header.unblinding_wanted.connect(self.end)
        self._session.blinding_changed.connect(self._follow_blinding)
        self._follow_blinding()

    def why_shut(self, page: str) -> str:
        """Return why a page is locked, or "" if the page is not locked."""
        return why_hidden(self._session.blinding, PAGES[page])

    def end(self) -> None:
        """Record the end of blinding for the open case, then show all hidden data."""
        if not self._session.blinding.is_blind:
            return
        if self._session.study:
            self._notifier.hint(_OF_STUDY)
            return
        if self._session.context is None:
            self._show_all(None)
        else:
            self._readers.with_reader(lambda: self._editing.save_if_needed(self._record_end))

    # -------------------------------------------------------------------- inner

    def _follow_blinding(self) -> None:
        blinding: Blinding = self._session.blinding
        self._scene.stack.blinding = blinding
        self._header.set_blind(blinding.text, may_end=not self._session.study)
        self._pages.shut({page: self.why_shut(page) for page in PAGES})
        self._refine_page.set_blind(blinding)

    def _record_end(self, all_saved: bool) -> None:
        case, context, reader = self._session.case, self._session.context, self._session.reader
        if not all_saved or case is None or context is None or not reader:
            return
        # This releases the journal, which records the event.
        self._session.close_case()

        def refuse(error: Exception) -> None:
            self._notifier.fail(_ENDING, error)
            self._opening.open_case(context.case_id)

        self._jobs.start(
            "unblind",
            _ENDING,
            lambda: self._services.record_unblinding(case, context.workspace, reader),
            lambda _none: self._show_all(context),
            failed=refuse,
            stopped=lambda: self._opening.open_case(context.case_id),
        )

    def _show_all(self, context: CaseContext | None) -> None:
        self._session.set_blinding(NOT_BLIND)
        self.ended.emit()
        opened = self._session.opened if context is None else context.opened
        if opened is not None:
            case_id = None if context is None else context.case_id
            self._listing.open_data_set(opened.data_set.root, case_id)
