"""Scroll to what has just come out on a page, when its height is not known yet."""

from typing import Final

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QScrollArea, QWidget

from napari_mamamia.widgets.controls.call_later import call_later

_LAID_OUT_MS: Final = 500
"""Lines of text are laid out in several turns; after this a user has begun to scroll."""


def reveal(control: QWidget) -> None:
    """Scroll to a control, and again as often as what surrounds it is laid out anew.

    A control that lies in nothing that scrolls, or that is hidden, is left alone.
    """
    area = control.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if isinstance(area, QScrollArea):
        _Reveal(control, area)


class _Reveal(QObject):
    """Keeps a control in sight for half a second; a child of the control, so it ends with it."""

    def __init__(self, control: QWidget, area: QScrollArea) -> None:
        super().__init__(control)
        self._control, self._area = control, area
        control.installEventFilter(self)
        area.verticalScrollBar().rangeChanged.connect(self.scroll)
        call_later(self, self.scroll)
        call_later(self, self.deleteLater, after_ms=_LAID_OUT_MS)

    def eventFilter(self, _control: QObject | None, event: QEvent | None) -> bool:
        """Scroll once the control has its new size or place."""
        if event is not None and event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            call_later(self, self.scroll)
        return False

    def scroll(self, *_range: int) -> None:
        """Scroll to the control as it lies now, its end first where it is higher than the area."""
        if self._control.isVisible():
            self._area.ensureWidgetVisible(self._control)
