"""Scrolling to a control that has just appeared on a page, before its height is known."""

from typing import Final

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QScrollArea, QWidget

from napari_mamamia.widgets.controls.call_later import call_later

_LAID_OUT_MS: Final = 500
"""Time in ms in which wrapped text is laid out; scrolling later could disturb the user."""


def reveal(control: QWidget) -> None:
    """Scroll to a control now, and again whenever the layout around it changes.

    A hidden control, or a control outside a scroll area, is ignored.
    """
    area = control.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if isinstance(area, QScrollArea):
        _Reveal(control, area)


class _Reveal(QObject):
    """An object that keeps a control visible for half a second and is deleted with the control."""

    def __init__(self, control: QWidget, area: QScrollArea) -> None:
        super().__init__(control)
        self._control, self._area = control, area
        control.installEventFilter(self)
        area.verticalScrollBar().rangeChanged.connect(self.scroll)
        call_later(self, self.scroll)
        call_later(self, self.deleteLater, after_ms=_LAID_OUT_MS)

    def eventFilter(self, _control: QObject | None, event: QEvent | None) -> bool:
        """Scroll after the control is resized or moved."""
        if event is not None and event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            call_later(self, self.scroll)
        return False

    def scroll(self, *_range: int) -> None:
        """Scroll to the control, or to its end if it is higher than the area."""
        if self._control.isVisible():
            self._area.ensureWidgetVisible(self._control)
