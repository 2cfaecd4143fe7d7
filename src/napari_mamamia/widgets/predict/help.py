"""Remedies after a failed prediction, each with a button; no button starts a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.controls import button, discard, label


@dataclass(frozen=True, slots=True)
class Remedy:
    """A button for a remedy, with its text, tooltip and action."""

    text: str
    tip: str
    take: Callable[[], None]


class PredictHelp(QWidget):
    """A widget that shows remedies and is hidden without remedies.

    The signal `shown` is emitted when remedies are shown.
    """

    shown = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_help")
        self.said = label("predict_help_text", tip=tr("Possible remedies"))
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(3)
        self._layout.addWidget(self.said)
        self.buttons: list[QWidget] = []
        self.show_remedies(())

    def show_remedies(self, remedies: Sequence[Remedy], said: str = "") -> None:
        """Show a sentence and a button for each remedy, replacing the previous remedies."""
        for old in self.buttons:
            discard(old)
        self.buttons = []
        for number, remedy in enumerate(remedies):
            remedy_button = button(f"predict_offer_{number}", remedy.text, remedy.tip, remedy.take)
            self._layout.addWidget(remedy_button)
            self.buttons.append(remedy_button)
        self.said.setText(said)
        self.said.setVisible(bool(said))
        self.setVisible(bool(remedies or said))
        if remedies or said:
            self.shown.emit()
