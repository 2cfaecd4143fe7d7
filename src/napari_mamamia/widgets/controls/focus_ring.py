"""A ring around the control that has the keyboard, the same on every kind of control of ours."""

from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QRect, Qt
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QApplication, QSplitter, QWidget

from napari_mamamia.widgets.controls.controls import tell_reader

_WIDTH: Final = 2
_FOLLOWED: Final = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide)


class _Ring(QWidget):
    """The ring itself; it takes no clicks."""

    def __init__(self, holder: QWidget, colour: str) -> None:
        super().__init__(holder)
        self.setObjectName("focus_ring")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self._colour = QColor(colour)

    def paintEvent(self, _event: Any) -> None:
        """Draw the ring."""
        painter = QPainter(self)
        painter.setPen(QPen(self._colour, _WIDTH))
        inside = _WIDTH // 2
        painter.drawRect(self.rect().adjusted(inside, inside, -inside, -inside))
        painter.end()


class FocusRing(QObject):
    """Draws a ring around whatever control below `roots` has the keyboard.

    napari's style sheet draws no focus at all, and a border of its own for each kind of control
    would change their sizes.
    """

    def __init__(self, *roots: QWidget) -> None:
        super().__init__(roots[0])
        self._roots = roots
        self._colour = "white"
        self._around: QWidget | None = None
        self._ring: _Ring | None = None
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._follow_focus)

    def set_colour(self, colour: str) -> None:
        """Draw in a colour that stands out in the theme."""
        self._colour = colour
        self._place_ring()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay around the control where it moves or goes."""
        if event.type() in _FOLLOWED and watched is self._around:
            self._place_ring()
        return False

    def _follow_focus(self, _before: QWidget | None, now: QWidget | None) -> None:
        if self._around is not None:
            self._around.removeEventFilter(self)
        is_ours = now is not None and any(root.isAncestorOf(now) for root in self._roots)
        self._around = now if is_ours else None
        if self._around is not None:
            tell_reader(self._around)
            self._around.installEventFilter(self)
            self._around.destroyed.connect(self._forget_control)
        self._place_ring()

    def _place_ring(self) -> None:
        """Draw the ring anew: as a neighbour of the control it scrolls and goes with it."""
        if self._ring is not None:
            self._ring.hide()
            self._ring.deleteLater()
            self._ring = None
        around = self._around
        holder = None if around is None else around.parentWidget()
        if around is None or holder is None or not around.isVisible():
            return
        room = QRect(around.geometry())
        if isinstance(holder, QSplitter):  # what a splitter holds becomes a part of it
            holder, room = around, around.rect()
        self._ring = _Ring(holder, self._colour)
        self._ring.destroyed.connect(self._forget_ring)
        wide = room.adjusted(-_WIDTH, -_WIDTH, _WIDTH, _WIDTH)
        self._ring.setGeometry(wide.intersected(holder.rect()))
        self._ring.show()

    def _forget_control(self) -> None:
        # By the time that a control is gone, another one may have the keyboard.
        if self.sender() is self._around:
            self._around = None

    def _forget_ring(self) -> None:
        if self.sender() is self._ring:
            self._ring = None
