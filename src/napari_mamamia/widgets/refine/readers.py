"""Who edits: asked once in the header, remembered, changed there."""

from collections.abc import Callable
from dataclasses import replace

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening


class Readers(WindowPart):
    """Keeps the reader's name. A new name shows that reader's own mask of the open case."""

    def __init__(
        self, context: WindowContext, header: Header, opening: Opening, editing: Editing
    ) -> None:
        super().__init__(context)
        self._header = header
        self._opening = opening
        self._editing = editing
        self._waiting: Callable[[], None] | None = None
        header.reader_wanted.connect(lambda: self._ask_reader(None))
        header.reader_given.connect(self._take_name)
        self._session.set_reader(self._services.load_preferences().reader)
        header.set_reader(self._session.reader)

    def with_reader(self, then: Callable[[], None]) -> None:
        """Do `then` once a reader is known; asks for the name first where none is."""
        if self._session.reader:
            then()
        else:
            self._ask_reader(then)

    def _ask_reader(self, then: Callable[[], None] | None) -> None:
        self._waiting = then
        self._header.ask_reader(self._session.reader)

    def _take_name(self, name: str) -> None:
        try:
            name = self._services.check_name(name, "the name of a reader")
        except MamamiaError as error:
            self._notifier.fail("Taking this name", error)
            return
        if name == self._session.reader:
            self._header.set_reader(name)
            return
        self._editing.save_if_needed(lambda all_saved: self._change_reader(name, all_saved))

    def _change_reader(self, name: str, all_saved: bool) -> None:
        """Take the name; a mask that could not be saved goes with it."""
        try:
            remembered = replace(self._services.load_preferences(), reader=name)
            self._services.save_preferences(remembered)
        except MamamiaError as error:
            self._notifier.warn(f"Your name is used now but not remembered: {error}")
        self._session.set_reader(name)
        self._header.set_reader(name)
        waiting, self._waiting = self._waiting, None
        if all_saved:
            self._opening.show_own_mask(waiting)
        else:
            self._editing.keep_under(name)
