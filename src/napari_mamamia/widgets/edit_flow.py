"""Page Edit at work: whose mask, from what, and whether it is saved."""

from qtpy.QtCore import QObject, QTimer

from napari_mamamia.widgets.edit_page import EditPage
from napari_mamamia.widgets.editing import Editing
from napari_mamamia.widgets.header import Header
from napari_mamamia.widgets.layers import Role
from napari_mamamia.widgets.mask_watch import SaveState
from napari_mamamia.widgets.notify import Level
from napari_mamamia.widgets.readers import Readers
from napari_mamamia.widgets.session import Session

__all__ = ["EditFlow"]

_CLOCK_MS = 5_000


class EditFlow(QObject):
    """Joins the page, the header's saved state, the session and editing."""

    def __init__(
        self, page: EditPage, header: Header, session: Session, editing: Editing, readers: Readers
    ) -> None:
        super().__init__()
        self._page = page
        self._header = header
        self._session = session
        self._editing = editing
        page.start_wanted.connect(lambda role: readers.with_reader(lambda: self._start(role)))
        page.brush_wanted.connect(editing.take_brush)
        page.pan_wanted.connect(editing.put_down_brush)
        page.save_wanted.connect(editing.save)
        page.discard_wanted.connect(editing.discard)
        editing.state_changed.connect(self._show_state)
        session.case_changed.connect(self._show_case)
        session.masks_changed.connect(self._show_masks)
        self._clock = QTimer(self)
        self._clock.setInterval(_CLOCK_MS)
        self._clock.timeout.connect(self._show_state)
        self._clock.start()
        self._show_case()

    def _start(self, role: Role | None) -> None:
        self._editing.start(role)

    def _show_case(self) -> None:
        self._page.need("" if self._session.case else "Open a case first.")
        self._show_masks()

    def _show_masks(self) -> None:
        self._page.show_sources(tuple(self._session.masks))
        mask = self._session.mask(Role.REFINED)
        whose = ""
        if mask is not None:
            origin = mask.started_from or "an empty mask"
            whose = f"{mask.name}'s mask, made from {origin}"
        self._page.show_mask(whose, self._editing.text, has_mask=mask is not None)
        self._show_state()

    def _show_state(self) -> None:
        state, text = self._editing.state, self._editing.text
        failed = state is SaveState.FAILED
        self._header.set_saved(text, Level.ERROR if failed else Level.HINT)
        mask = self._session.mask(Role.REFINED)
        where = f"\n{mask.saved.path}" if mask and mask.saved else ""
        self._page.state.setText(f"{text}{where}")
        is_next = self._editing.is_dirty or state is SaveState.NEW
        self._page.set_save_is_next(is_next, failed=failed)
