"""The keyboard in a window: Tab goes as it is read, and a ring is around what has the keyboard."""

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QApplication, QScrollArea, QSplitter, QWidget

from napari_mamamia.widgets.controls.controls import tell_reader


class ReadingOrder:
    """Mixed into a widget: Tab walks its controls line by line, whatever order they were made in.

    Qt's own order is that of making, and controls that move (the steps of a hanging stand in the
    line over the picture or on a page) take their old place along. After the last control the
    keyboard goes on to the next of the rooms that were joined, else to what Qt has next outside.
    """

    rooms: Sequence[QWidget] = ()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Give the keyboard to the control after, or before, the one that has it."""
        root: Any = self
        now = QApplication.focusWidget()
        controls = order_controls(root)
        at = [index for index, control in enumerate(controls) if now and _is_in(now, control)]
        if not at:
            return bool(super().focusNextPrevChild(forward))  # type: ignore[misc]
        place = at[-1] + (1 if forward else -1)
        inside = 0 <= place < len(controls)
        if inside:
            target: QWidget | None = controls[place]
        else:
            target = _find_next(root, self.rooms, forward)
        if target is None:
            return False
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        target.setFocus(reason)
        _scroll_to(target)
        return True


def join_rooms(*rooms: QWidget) -> None:
    """Let Tab go from the last control of a room to the first of the next that is on screen.

    Qt's own order skipped the whole panel where no case was open: what moved into the line over the
    picture came behind it there.
    """
    for room in rooms:
        if isinstance(room, ReadingOrder):
            room.rooms = rooms


def order_controls(root: QWidget) -> list[QWidget]:
    """Return the controls of a widget that Tab stops at, as they are read.

    Of one holder's children those that share a line are read from left to right, lines from the
    top; what a child holds is read before its next neighbour.
    """
    stops = [root] if _is_stop(root) else []
    children = [
        child
        for child in root.children()
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow()
    ]
    for child in sorted(children, key=cmp_to_key(_compare_places)):
        stops += order_controls(child)
    return stops


def _compare_places(one: QWidget, other: QWidget) -> int:
    a, b = one.geometry(), other.geometry()
    beside = min(a.bottom(), b.bottom()) - max(a.top(), b.top())
    share_line = 2 * beside > min(a.height(), b.height())
    return int(a.left() - b.left() if share_line else a.top() - b.top())


def _is_stop(widget: QWidget) -> bool:
    policy = widget.focusPolicy()
    is_tabbed = (policy & Qt.FocusPolicy.TabFocus) == Qt.FocusPolicy.TabFocus
    return bool(is_tabbed and widget.isEnabled() and widget.focusProxy() is None)


def _is_in(widget: QWidget, holder: QWidget) -> bool:
    return widget is holder or holder.isAncestorOf(widget)


def _find_next(root: QWidget, rooms: Sequence[QWidget], forward: bool) -> QWidget | None:
    """Return what comes outside of `root`: in Qt's order, unless that skips the next room."""
    outside = _find_outside(root, forward)
    index = rooms.index(root) if root in rooms else len(rooms)
    for room in rooms[index + 1 :] if forward else rooms[:index][::-1]:
        controls = order_controls(room) if room.isVisible() else []
        if controls:
            leads_there = _find_room(outside, rooms, forward) is room
            return outside if leads_there else controls[0 if forward else -1]
    return outside


def _find_room(start: QWidget | None, rooms: Sequence[QWidget], forward: bool) -> QWidget | None:
    """Return the room that Qt's own order comes to, from a control on."""
    widget, met = start, set[int]()
    while widget is not None and id(widget) not in met:
        met.add(id(widget))
        room = next((room for room in rooms if _is_in(widget, room)), None)
        if room is not None:
            return room
        widget = _find_outside(widget, forward)
    return None


def _find_outside(root: QWidget, forward: bool) -> QWidget | None:
    """Return what Tab stops at next in Qt's own order that is not of `root`."""
    step = QWidget.nextInFocusChain if forward else QWidget.previousInFocusChain
    widget = step(root)
    while widget is not None and widget is not root:
        is_new = not _is_in(widget, root) and not widget.isWindow()
        if is_new and widget.isVisible() and _is_stop(widget):
            return widget
        widget = step(widget)
    return None


def _scroll_to(widget: QWidget) -> None:
    holder = widget.parentWidget()
    while holder is not None:
        if isinstance(holder, QScrollArea):
            holder.ensureVisible(*_middle_in(widget, holder))
        holder = holder.parentWidget()


def _middle_in(widget: QWidget, area: QScrollArea) -> tuple[int, int, int, int]:
    """Return a widget's middle on what an area scrolls, and half of its sides."""
    middle = widget.mapTo(area.widget(), QPoint(widget.width() // 2, widget.height() // 2))
    return middle.x(), middle.y(), widget.width() // 2, widget.height() // 2


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
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._place_ring)
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
            # In a turn of its own: to show a ring lays its neighbours out, and in the middle of
            # being laid out they would be left without any size.
            self._soon.start()
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
