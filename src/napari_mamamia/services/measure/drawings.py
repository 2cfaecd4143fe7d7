"""Read and write a reader's drawings on a case, and describe their measures."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.case import Case
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.core.texts import tr_n
from napari_mamamia.io.workspace.measurements import (
    append_measurement,
    read_measurements,
    take_back_measurement,
)
from napari_mamamia.io.workspace.workspace import Workspace, file_name
from napari_mamamia.metrics.shapes import values_in_ellipse
from napari_mamamia.services.report.measures import list_inside, measure_drawn, say_measures


@dataclass(frozen=True, slots=True)
class CaseDrawings:
    """The drawings on a case; `problem` describes records that cannot be read, or is ""."""

    items: tuple[Measurement, ...] = ()
    problem: str = ""


def open_drawings(workspace: Workspace, case_id: str) -> CaseDrawings:
    """Return the drawings on a case; if other readers are hidden, only the reader's own drawings.

    Raises
    ------
    FormatError
        If the record exists but cannot be read.
    """
    record = read_measurements(workspace.root, case_id)
    is_alone = workspace.blinding.hides(Hidden.OTHER_READERS)
    items = (item for item in record.items if not is_alone or item.reader == workspace.reader)
    n_damaged, n_newer = len(record.problems), record.n_newer
    parts = (
        tr_n("{n} damaged record", "{n} damaged records", n_damaged) if n_damaged else "",
        tr_n("{n} event from a later version", "{n} events from a later version", n_newer)
        if n_newer
        else "",
    )
    left_out = " and ".join(text for text in parts if text)
    return CaseDrawings(tuple(items), f"Left out of the record: {left_out}" if left_out else "")


@dataclass(slots=True)
class _Step:
    key: str
    drawn: Measurement
    is_taken_back: bool = False
    is_at_work: bool = False


@dataclass(slots=True)
class DrawingLog:
    """A thread-safe log that writes new and removed drawings in order, each exactly once.

    `key` is the caller's unique name of a drawing. Drawings that cannot be written wait for the
    next `write`.
    """

    workspace: Workspace
    append: Callable[..., Measurement] = append_measurement
    take_away: Callable[..., object] = take_back_measurement
    _steps: deque[_Step] = field(default_factory=deque)
    _stored: dict[str, Measurement] = field(default_factory=dict)
    _gone: dict[str, Measurement] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_waiting(self) -> bool:
        """Whether any drawing has not been written yet."""
        return bool(self._steps)

    @property
    def waiting(self) -> dict[str, Measurement]:
        """Drawings that have not been written yet, by key."""
        with self._turn:
            return {step.key: step.drawn for step in self._steps if not step.is_taken_back}

    @property
    def gone_ids(self) -> frozenset[str]:
        """Ids of the drawings that this program has removed, even if they were not written yet."""
        gone = ((self._stored.get(key) or drawing) for key, drawing in self._gone.items())
        return frozenset(drawing.measurement_id for drawing in gone)

    def find_stored(self, key: str) -> Measurement | None:
        """Return the stored form of a drawing, or None if it has not been written yet."""
        return self._stored.get(key)

    def draw(self, key: str, drawn: Measurement) -> None:
        """Queue a drawing to be written."""
        with self._turn:
            self._steps.append(_Step(key, drawn))

    def take_back(self, key: str, drawn: Measurement) -> None:
        """Remove a drawing; if it was never written, it is discarded."""
        with self._turn:
            for step in self._steps:
                if step.key == key and not step.is_at_work:
                    self._steps.remove(step)
                    return
            self._gone[key] = drawn
            self._steps.append(_Step(key, drawn, is_taken_back=True))

    def read(self, case_id: str) -> CaseDrawings:
        """Return the drawings on disk as in `open_drawings`; writing is blocked during the read."""
        with self._writing:
            return open_drawings(self.workspace, case_id)

    def write(self) -> None:
        """Write all queued drawings, and return when they are on disk.

        Raises
        ------
        CaseError, SaveError
            If a drawing cannot be written; this drawing and all later drawings remain queued.
        """
        with self._writing:
            while (step := self._next_step()) is not None:
                try:
                    self._write_step(step)
                finally:
                    step.is_at_work = False
                with self._turn:
                    self._steps.popleft()

    def _next_step(self) -> _Step | None:
        with self._turn:
            if not self._steps:
                return None
            self._steps[0].is_at_work = True
            return self._steps[0]

    def _write_step(self, step: _Step) -> None:
        root = self.workspace.root
        file_name(step.drawn.reader, "the name of a reader")
        if step.is_taken_back:
            self.take_away(root, self._stored.get(step.key, step.drawn))
        else:
            self._stored[step.key] = self.append(root, step.drawn)
            self.workspace.note_data_set()


def begin_log(workspace: Workspace) -> DrawingLog:
    """Return a log that writes to a workspace; no file is changed yet."""
    return DrawingLog(workspace)


def describe_drawn(drawn: Measurement, case: Case | None, shown: NDArray[Any] | None = None) -> str:
    """Return the measurements of a drawing as text, as in a report, or "".

    Parameters
    ----------
    shown
        The displayed image ``(z, y, x)`` if it is not a phase, such as a subtraction. An ellipse
        that was not drawn on a phase is measured in this image.
    """
    measures = measure_drawn(drawn, case)
    is_of_shown = drawn.kind is MeasureKind.ELLIPSE and drawn.phase is None
    if is_of_shown and case is not None and shown is not None and shown.shape == case.grid.shape:
        inside = values_in_ellipse(shown, case.grid, drawn.plane, *drawn.points_mm)
        measures = (*measures, *list_inside(inside))
    return " · ".join(filter(None, (say_measures(measures), drawn.text)))
