"""Opens a case of a study with its blinding and round, and measures the working time."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qtpy.QtCore import QElapsedTimer, QObject, QTimer
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.features.review.services.look import NO_PSEUDONYMS, Pseudonymizer
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.controls.inputs import InputWatch
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_INPUT_COUNTS_MS: Final = 30_000
"""Time after an input, in ms, that counts as working time; see `docs/methods/review.md`."""
_TICK_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class StudyPlace:
    """Where and how a case is opened: images, this round's masks, blinding, pseudonyms."""

    data_set: Path
    workspace: Path
    blinding: Blinding
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS


class StudyCase(WindowPart):
    """Opens and closes cases of a study in the window.

    `is_at` returns whether a case is displayed with the settings of a location.
    """

    def __init__(
        self, context: WindowContext, listing: Listing, opening: Opening, editing: Editing
    ) -> None:
        super().__init__(context)
        self._listing = listing
        self._opening = opening
        self._editing = editing
        self._place: StudyPlace | None = None

    def show(self, case_id: str, place: StudyPlace) -> None:
        """Save the masks of the displayed case, then open another case."""
        self._editing.save_if_needed(lambda saved: self._show_now(case_id, place, saved))

    def is_at(self, case_id: str, place: StudyPlace) -> bool:
        """Return whether a case is displayed with the images, masks and blinding of `place`."""
        workspace = self._session.workspace
        is_there = workspace is not None and workspace.root == place.workspace
        return is_there and self._session.case_id == case_id

    def leave(self) -> None:
        """Close the case after saving its drawings on this computer."""
        self._session.close_case()
        self._scene.drop_other_cases("")

    def _show_now(self, case_id: str, place: StudyPlace, all_saved: bool) -> None:
        if not all_saved:
            return
        if place == self._place and self._session.opened is not None:
            self._opening.open_case(case_id)
            return
        if place.blinding != self._session.blinding:
            # Two cases with different blinding must not share layers.
            self.leave()
            self._session.opened = None
            self._session.set_blinding(place.blinding)
        self._place = place
        self._session.names = dict(place.pseudonymizer.names) or None
        self._notifier.cover = place.pseudonymizer.cover
        self._listing.open_data_set(place.data_set, case_id, place.workspace, remembers=False)


class ActiveClock(QObject):
    """Clock that counts working time: seconds in an active window within 30 s of an input.

    Parameters
    ----------
    is_in_front
        Function that returns whether a window of this program has the keyboard focus; replaced in
        tests.
    """

    def __init__(self, parent: QObject, is_in_front: Callable[[], bool] | None = None) -> None:
        super().__init__(parent)
        self._is_in_front = is_in_front or _is_in_front
        self._since_input = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self.tick)
        self._inputs = InputWatch(self)
        self._inputs.acted.connect(self._note_input)
        self.seconds = 0

    def begin(self, seconds: int) -> None:
        """Start counting at a given number of seconds."""
        self.end()
        self.seconds = seconds
        self._since_input.start()
        self._timer.start()
        self._inputs.begin()

    def end(self) -> None:
        """Stop counting."""
        if self._timer.isActive():
            self._timer.stop()
            self._inputs.end()

    @property
    def is_active(self) -> bool:
        """Return whether the person is working now."""
        is_recent = self._since_input.isValid() and self._since_input.elapsed() <= _INPUT_COUNTS_MS
        return self._timer.isActive() and is_recent and self._is_in_front()

    def tick(self) -> None:
        """Count a second if the person is working."""
        self.seconds += self.is_active

    def _note_input(self) -> None:
        self._since_input.start()


def _is_in_front() -> bool:
    return QApplication.activeWindow() is not None
