"""Drawings on the open case, shown immediately and written in a thread, with deletion and undo."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from qtpy.QtCore import Signal

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.measurement import Measurement
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.measure.drawings import CaseDrawings, DrawingLog
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "measurements"
_KEEPING: Final = tr("Saving the measurement")
_NO_FOLDER: Final = tr(
    "Measurements are saved with a data set, but this case does not belong to one: open a folder "
    "first."
)
_Place: TypeAlias = tuple[str, str, str | None]
"""Workspace folder ("" if there is none), case id, and reader (None if no name is set)."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawing on the open case.

    `key` remains the same when the drawing is changed; `version` names its current state. `is_own`
    says whether this reader may change the drawing.
    """

    key: str
    version: str
    item: Measurement
    is_own: bool = True


class DrawnRecord(WindowPart):
    """A component that stores the drawings on the open case; `changed` reports any change.

    `with_reader` runs a callback once a reader name is set, because each drawing has an author.

    Attributes
    ----------
    chosen
        The key of the selected drawing, or "" if none is selected.
    problem
        A description of the records that were left out, or "" if there are none.
    """

    changed = Signal()

    def __init__(
        self, context: WindowContext, with_reader: Callable[[Callable[[], None]], None]
    ) -> None:
        super().__init__(context)
        self._with_reader = with_reader
        self._of: _Place | None = None
        self._shown_for: tuple[object, ...] = ()
        self._items: dict[str, Drawn] = {}
        self._acts: list[tuple[str, Measurement | None]] = []
        self._log: DrawingLog | None = None
        self._logs: dict[_Place, DrawingLog] = {}
        self._count = 0
        self.chosen = ""
        self.problem = ""
        self._is_failing = False
        session = self._session
        for signal in (session.case_changed, session.reader_changed, session.blinding_changed):
            signal.connect(self._follow_case)

    # ---------------------------------------------------------------- drawings

    @property
    def items(self) -> tuple[Drawn, ...]:
        """The drawings, with those on disk first."""
        return tuple(self._items.values())

    def find(self, key: str) -> Drawn | None:
        """Return a drawing by its key."""
        return self._items.get(key)

    def is_unsaved(self, one: Drawn) -> bool:
        """Return whether writing a drawing has failed; False while the drawing is being written."""
        if one.item.measurement_id:
            return False
        is_kept = self._log is not None and self._log.find_stored(one.version) is not None
        return not is_kept and (self._is_failing or self._log is None or not one.item.reader)

    @property
    def can_undo(self) -> bool:
        """Whether an action of this window can be undone."""
        return bool(self._acts)

    def add(self, item: Measurement) -> None:
        """Add a drawing to the open case, and select it."""
        key = self._name_next()
        self._acts.append((key, None))
        self._put_item(key, item)
        self._show_and_write(key)

    def change(self, key: str, item: Measurement) -> None:
        """Replace one of the reader's own drawings."""
        before = self._items.get(key)
        if before is not None and before.is_own and before.item != item:
            self._acts.append((key, before.item))
            self._put_item(key, item)
            self._show_and_write(key)

    def remove(self, key: str) -> None:
        """Delete one of the reader's own drawings; the file keeps its history."""
        before = self._items.get(key)
        if before is not None and before.is_own:
            self._acts.append((key, before.item))
            self._put_item(key, None)
            self._show_and_write("")

    def undo(self) -> None:
        """Undo the last change of a drawing."""
        if self._acts:
            key, before = self._acts.pop()
            self._put_item(key, before)
            self._show_and_write(key)

    def choose(self, key: str) -> None:
        """Select a drawing; "" clears the selection."""
        key = key if key in self._items else ""
        if key != self.chosen:
            self.chosen = key
            self.changed.emit()

    # ------------------------------------------------------------------- inner

    def _name_next(self) -> str:
        self._count += 1
        return f"new {self._count}"

    def _put_item(self, key: str, item: Measurement | None) -> None:
        before = self._items.get(key)
        if before is not None and self._log is not None and before.item.reader:
            self._log.take_back(before.version, before.item)
        if item is None:
            self._items.pop(key, None)
            return
        reader, version = self._session.reader or "", self._name_next()
        item = replace(item, reader=reader, measurement_id="", created="")
        self._items[key] = Drawn(key, version, item)
        if self._log is not None and reader:
            self._log.draw(version, item)

    def _show_and_write(self, key: str) -> None:
        self.chosen = key if key in self._items else ""
        self.changed.emit()
        if self._session.workspace is None:
            self._notifier.hint(_NO_FOLDER)
        elif self._session.reader is None:
            self._with_reader(self._write_waiting)
        else:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Write pending changes in a thread, each exactly once."""
        log = self._log
        if log is not None and log.is_waiting:
            self._jobs.start(
                f"{_LANE} {self._of}",
                _KEEPING,
                log.write,
                lambda _done: self._note_written(None),
                failed=self._note_written,
                shown=False,
            )

    def _note_written(self, error: Exception | None) -> None:
        self._is_failing = error is not None
        if error is not None:
            self._notifier.fail(_KEEPING, error)
        self.changed.emit()

    # --------------------------------------------------------------------- case

    def _follow_case(self) -> None:
        session, workspace, case = self._session, self._session.workspace, self._session.case
        root = "" if workspace is None else str(workspace.root)
        of = None if case is None else (root, case_key(case.case_id), session.reader)
        signal = None if case is None else case.signal
        before, self._shown_for = self._shown_for, (of, id(signal), session.blinding)
        if before == self._shown_for:
            self.changed.emit()  # more phases are read: an ellipse has its values now
            return
        is_same_case = before[1:2] == (id(signal),) and signal is not None
        nameless = [item for item in self.items if is_same_case and not item.item.reader]
        self._of, self._items, self._acts, self._log = of, {}, [], None
        self.problem, self._is_failing = "", False
        if of is not None and workspace is not None:
            self._log = self._logs.get(of) or self._services.measures.begin_log(workspace)
            self._logs[of] = self._log
            self._log.workspace = workspace
            waiting = self._log.waiting.items()
            self._items = {version: Drawn(version, version, item) for version, item in waiting}
        for drawing in nameless:
            self._put_item(drawing.key, drawing.item)
        self.choose("")
        self.changed.emit()
        self.read()
        self._write_waiting()

    def read(self) -> None:
        """Read the drawings on disk, for example after changes in another window."""
        log, case_id = self._log, self._session.case_id
        if log is not None:
            self._jobs.start(
                f"{_LANE} read",
                tr("Reading the measurements"),
                lambda: log.read(case_id),
                self._take_items,
                still=lambda: self._log is log,
                shown=False,
            )

    def _take_items(self, opened: CaseDrawings) -> None:
        log, reader = self._log, self._session.reader
        if log is None:
            return
        drawn_here = {
            key: item for key, item in self._items.items() if not item.item.measurement_id
        }
        stored = (log.find_stored(drawn_here.version) for drawn_here in drawn_here.values())
        passed_over = log.gone_ids | {
            drawing.measurement_id for drawing in stored if drawing is not None
        }
        names = [item.measurement_id for item in opened.items]
        others = {
            name: Drawn(name, name, item, is_own=item.reader == reader)
            for name, item in zip(names, opened.items, strict=True)
            if name not in passed_over
        }
        before = (self._items, self.problem)
        self._items, self.problem = {**others, **drawn_here}, opened.problem
        if before != (self._items, self.problem):
            self.choose(self.chosen)
            self.changed.emit()

    def close(self) -> None:
        """Write pending drawings immediately when the window closes."""
        for log in self._logs.values():
            try:
                log.write()
            except MamamiaError as error:
                self._notifier.fail(_KEEPING, error)
