"""The reader's name, which the header requests, and which is remembered and can be changed.

A name is valid for one session. The name from an earlier session is used only if nobody else has
saved work in the data set; otherwise the first edit asks for the name.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_OF_STUDY: Final = tr(
    "This window reads the study {} as {}. To read under a different name, open another window."
)
_FIXED: Final = tr(
    "Blinded: other readers are hidden. To read under a different name, open another window."
)


class Readers(WindowPart):
    """A component that stores the reader's name.

    A new name shows the reader's own mask for the open case.
    """

    def __init__(
        self, context: WindowContext, header: Header, opening: Opening, editing: Editing
    ) -> None:
        super().__init__(context)
        self._header = header
        self._opening = opening
        self._editing = editing
        self._waiting: Callable[[], None] | None = None
        self._records: list[Callable[[], None]] = []
        self._name = ""
        self._is_given = False
        header.reader_wanted.connect(lambda: self._ask_reader(None))
        header.reader_given.connect(self._take_name)
        header.reader_cancelled.connect(self._cancel)
        self._session.set_reader(self._services.load_preferences().reader)
        header.set_reader(self._session.reader)
        self._session.blinding_changed.connect(self._forget_remembered)
        self._session.data_set_changed.connect(self._forget_in_shared)

    def with_reader(self, then: Callable[[], None]) -> None:
        """Call `then`, which edits a mask, once a reader name is set; ask for a missing name.

        Only the last request is kept, and only if the reader has no mask for the case yet.
        """
        if self._session.reader:
            then()
        else:
            self._ask_reader(then)

    def record_with_reader(self, then: Callable[[], None]) -> None:
        """Call `then`, which saves a tag, an answer or a measurement, once a reader name is set.

        All requests are kept, in order, until the name is entered or the question is cancelled.
        """
        if self._session.reader:
            then()
        elif then not in self._records:
            self._records.append(then)
            self._ask_reader(self._waiting)

    def fix(self, reader: str, name: str) -> None:
        """Lock the reader while this window shows a study; `name` is the displayed name."""
        self._waiting, self._name, self._is_given = None, name, True
        self._records.clear()
        self._session.set_reader(reader)
        self._header.set_reader(name, is_fixed=True)

    @property
    def shown_name(self) -> str:
        """The displayed name of the reader in a study."""
        return self._name

    def _ask_reader(self, then: Callable[[], None] | None) -> None:
        if self._is_fixed:
            self._notifier.hint(self._why_fixed)
            return
        self._waiting = then
        self._header.ask_reader(self._session.reader or self._services.load_preferences().reader)

    def _cancel(self) -> None:
        self._waiting = None
        self._records.clear()
        self._header.set_reader(self._session.reader)

    @property
    def _is_fixed(self) -> bool:
        """Return whether the name is fixed because a different name would reveal a hidden mask."""
        is_hidden = self._session.blinding.hides(Hidden.OTHER_READERS)
        return (is_hidden or bool(self._session.study)) and bool(self._session.reader)

    @property
    def _why_fixed(self) -> str:
        study = self._session.study
        return _OF_STUDY.format(study, self._name) if study else _FIXED

    def _forget_remembered(self) -> None:
        """Ask for the name in a blinded reading; the remembered one may be another person's."""
        is_hidden = self._session.blinding.hides(Hidden.OTHER_READERS)
        if is_hidden and self._session.opened is None and not self._session.study:
            self._session.set_reader(None)
            self._header.set_reader(None)
            self._ask_reader(None)

    def _forget_in_shared(self) -> None:
        opened, reader = self._session.opened, self._session.reader
        if self._is_given or opened is None or reader is None:
            return
        if any(case_key(person) != case_key(reader) for person in opened.people):
            self._session.set_reader(None)
            self._header.set_reader(None)

    def _take_name(self, name: str) -> None:
        if self._is_fixed:
            self._notifier.hint(self._why_fixed)
            return
        try:
            name = self._services.check_name(name, tr("the name of a reader"))
        except MamamiaError as error:
            self._notifier.fail(tr("Saving the reader name"), error)
            return
        self._is_given = True
        if name == self._session.reader:
            self._header.set_reader(name)
            return
        self._editing.save_if_needed(lambda all_saved: self._change_reader(name, all_saved))

    def _change_reader(self, name: str, all_saved: bool) -> None:
        try:
            remembered = replace(self._services.load_preferences(), reader=name)
            self._services.save_preferences(remembered)
        except MamamiaError as error:
            self._notifier.warn(
                tr(
                    "Your name applies to this session, but could not be saved: {error}",
                    error=error,
                )
            )
        self._session.set_reader(name)
        self._header.set_reader(name)
        records, self._records = self._records, []
        for record in records:
            record()
        waiting, self._waiting = self._waiting, None
        if all_saved:
            self._opening.show_own_mask(waiting)
        else:
            self._editing.keep_under(name)
