"""The annotation protocol of the case: settings, checklist and time limit."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.texts import tr
from napari_mamamia.io.workspace.protocol import Protocol
from napari_mamamia.services.refine.strokes import list_lesions
from napari_mamamia.widgets.base.notify import Failed, Finished, outcome_of
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.painting import Painting
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_SECONDS: Final = 60
_MOST: Final = 255
_NO_LESION: Final = tr("Paint this lesion first, then add another one.")
_FULL: Final = tr("There are already 255 lesions, the maximum in a mask.")
_UNUSED: Final = tr(
    "The protocol {name} is loaded. Its {keys} belong to an earlier SmartPaint brush and are "
    "ignored, because the current brush finds the edge by itself."
)
_TOO_LATE: Final = tr(
    "The protocol {} is blinded, but cases were already open in this window. Restart and choose "
    "the protocol on the Cases page before you open a data set, or run: mamamia view DATA "
    "--protocol FILE"
)


def choose_protocol_file() -> Path | None:
    """Ask for a protocol file; return None if cancelled."""
    name, _ = QFileDialog.getOpenFileName(
        None, tr("Annotation protocol"), "", tr("Protocol (*.json)")
    )
    return Path(name) if name else None


def time_text(seconds: float, limit_s: float | None) -> str:
    """Return the editing time and its limit, such as "3:20 of 10:00".

    Examples
    --------
    >>> time_text(200.0, 600.0), time_text(61.0, None)
    ('3:20 of 10:00', '1:01')
    """
    used = f"{int(seconds) // _SECONDS}:{int(seconds) % _SECONDS:02d}"
    if limit_s is None:
        return used
    return tr(
        "{used} of {limit}:{limit_2:02d}",
        used=used,
        limit=int(limit_s) // _SECONDS,
        limit_2=int(limit_s) % _SECONDS,
    )


class Protocols(WindowPart):
    """A component that loads a protocol, applies it to each opened mask, and switches lesions.

    The signal `changed` reports new texts; `label_changed` reports that a different structure or
    lesion is painted. `choose_file` asks for a file; tests pass their own function.
    """

    changed = Signal()
    label_changed = Signal()

    def __init__(
        self,
        context: WindowContext,
        editing: Editing,
        painting: Painting,
        choose_file: Callable[[], Path | None] = choose_protocol_file,
    ) -> None:
        super().__init__(context)
        self._editing = editing
        self._painting = painting
        self.choose_file = choose_file
        self.protocol: Protocol | None = None

    @property
    def is_timed(self) -> bool:
        """Whether the text changes with the editing time."""
        return self.protocol is not None and self._editing.live is not None

    def ask(self) -> None:
        """Ask for a protocol file, and load the file."""
        path = self.choose_file()
        if path is not None:
            self.load(path)

    def load(self, path: Path) -> bool:
        """Load a protocol; if it cannot be read, report the error and keep the previous one."""
        outcome = outcome_of(lambda: self._services.read_protocol(path))
        if isinstance(outcome, Finished):
            return self._take_protocol(outcome.result)
        if isinstance(outcome, Failed):
            self._notifier.fail(tr("Loading the protocol {name}", name=path.name), outcome.error)
        return False

    def _take_protocol(self, protocol: Protocol) -> bool:
        before = self._session.blinding
        if not before.covers(protocol.blinding):
            if self._session.opened is not None or self._session.case is not None:
                self._notifier.warn_loudly(_TOO_LATE.format(protocol.name))
                return False
            self._session.set_blinding(Blinding(before.hidden | protocol.blinding.hidden))
        self.protocol = protocol
        self.apply()
        if protocol.unused:
            keys = ", ".join(protocol.unused)
            self._notifier.warn(_UNUSED.format(name=protocol.name, keys=keys))
        elif self._editing.live is None:
            self._notifier.hint(tr("Protocol {name} is loaded.", name=protocol.name))
        return True

    def use(self, protocol: Protocol) -> None:
        """Use the protocol of a study; the study itself determines the blinding."""
        self.protocol = protocol
        self.apply()

    def apply(self) -> None:
        """Apply phase, brush and structures of the protocol to the open mask."""
        protocol, live = self.protocol, self._editing.live
        if protocol is not None and live is not None:
            if protocol.phase is not None:
                self._scene.go_to_phase(protocol.phase)
            self._painting.set_brush(protocol.brush)
            if self._editing.open is not None:
                self._editing.open.protocol = protocol.name
        if live is not None:
            structures = self.structures()
            self.choose_label(structures[0][0] if structures else live.label)
        else:
            self._scene.mark_painted(0)
        self.changed.emit()

    def choose_label(self, value: int) -> None:
        """Select this structure for painting, and lock all other structures."""
        live = self._editing.live
        if live is None:
            return
        self._editing.mask.release()
        others = (other for other, _ in (*self.structures(), *list_lesions(live)))
        live.locked = frozenset(others) - {value}
        live.label = value
        self._painting.set_label(value)
        self._scene.mark_painted(value)
        self.changed.emit()
        self.label_changed.emit()

    def begin_lesion(self) -> None:
        """Start another lesion with the next free label."""
        live = self._editing.live
        if live is None:
            return
        self._editing.mask.release()
        labels = {value for value, _ in (*self.structures(), *list_lesions(live))}
        free = next((value for value in range(1, _MOST + 1) if value not in labels), None)
        if free is None or not (live.labels == live.label).any():
            self._notifier.hint(_NO_LESION if free else _FULL)
            return
        self.choose_label(free)

    def structures(self) -> Sequence[tuple[int, str]]:
        """Return the protocol's structures as (value, name)."""
        if self.protocol is None:
            return ()
        return tuple((structure.value, structure.name) for structure in self.protocol.structures)

    def shown(self) -> tuple[str, Sequence[str], Sequence[tuple[int, str]]]:
        """Return the text, checklist and structures to show on the page."""
        protocol, live = self.protocol, self._editing.live
        if protocol is None:
            lesions = () if live is None else list_lesions(live)
            return "", (), lesions if len(lesions) > 1 else ()
        seconds = live.summary.seconds if live is not None else 0.0
        limit = protocol.time_limit_s
        line = tr(
            "Protocol {name} · {time_text}", name=protocol.name, time_text=time_text(seconds, limit)
        )
        if limit is not None and seconds > limit:
            line += tr(" · over the time limit")
        return line, protocol.checklist, self.structures()
