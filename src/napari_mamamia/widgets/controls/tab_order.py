"""Keyboard focus in a window: Tab follows the reading order, and a ring shows the focus."""

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QApplication, QScrollArea, QSplitter, QWidget

from napari_mamamia.widgets.controls.controls import refresh_accessible_text


class ReadingOrder:
    """A mixin for a widget whose Tab order is the reading order instead of the order of creation.

    Qt uses the order of creation, and controls that move (the hanging steps are either above the
    image or on a page) keep their old position in this order. After the last control the focus goes
    to the next widget joined by `join_rooms`, or else to Qt's next widget outside.
    """

    rooms: Sequence[QWidget] = ()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus to the next or previous control."""
        root: Any = self
        now = QApplication.focusWidget()
        controls = order_controls(root)
        focused = [index for index, control in enumerate(controls) if now and _is_in(now, control)]
        if not focused:
            return bool(super().focusNextPrevChild(forward))  # type: ignore[misc]
        following = focused[-1] + (1 if forward else -1)
        inside = 0 <= following < len(controls)
        if inside:
            target: QWidget | None = controls[following]
        else:
            target = _find_next(root, self.rooms, forward)
        if target is None:
            return False
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        target.setFocus(reason)
        _scroll_to(target)
        return True


def join_rooms(*rooms: QWidget) -> None:
    """Let Tab move from the last control of a widget to the first control of the next visible one.

    Qt's own order skips the whole panel if no case is open, because controls that moved into the
    line above the image come after the panel.
    """
    for room in rooms:
        if isinstance(room, ReadingOrder):
            room.rooms = rooms


def order_controls(root: QWidget) -> list[QWidget]:
    """Return the controls of a widget that accept Tab focus, in reading order.

    Children of the same parent are read line by line from the top, and each line from left to
    right. The descendants of a child come before its next sibling.
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
    outside = _find_outside(root, forward)
    index = rooms.index(root) if root in rooms else len(rooms)
    for room in rooms[index + 1 :] if forward else rooms[:index][::-1]:
        controls = order_controls(room) if room.isVisible() else []
        if controls:
            leads_there = _find_room(outside, rooms, forward) is room
            return outside if leads_there else controls[0 if forward else -1]
    return outside


def _find_room(start: QWidget | None, rooms: Sequence[QWidget], forward: bool) -> QWidget | None:
    widget, met = start, set[int]()
    while widget is not None and id(widget) not in met:
        met.add(id(widget))
        room = next((room for room in rooms if _is_in(widget, room)), None)
        if room is not None:
            return room
        widget = _find_outside(widget, forward)
    return None


def _find_outside(root: QWidget, forward: bool) -> QWidget | None:
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
    middle = widget.mapTo(area.widget(), QPoint(widget.width() // 2, widget.height() // 2))
    return middle.x(), middle.y(), widget.width() // 2, widget.height() // 2


_WIDTH: Final = 2
_FOLLOWED: Final = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide)


class _Ring(QWidget):
    """The focus ring, which ignores clicks."""

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
    """A ring around the control below `roots` that has the keyboard focus.

    napari's style sheet does not show the focus, and additional borders would change the sizes of
    controls.
    """

    def __init__(self, *roots: QWidget) -> None:
        super().__init__(roots[0])
        self._roots = roots
        self._colour = "white"
        self._around: QWidget | None = None
        self._ring: _Ring | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._place_ring)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._follow_focus)

    def set_colour(self, colour: str) -> None:
        """Set the colour of the ring, which must contrast with the theme."""
        self._colour = colour
        self._place_ring()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move and hide the ring together with the control."""
        if event.type() in _FOLLOWED and watched is self._around:
            # The ring is shown in a later iteration, because showing it lays out its neighbours,
            # which would have no size during their layout.
            self._timer.start()
        return False

    def _follow_focus(self, _before: QWidget | None, now: QWidget | None) -> None:
        if self._around is not None:
            self._around.removeEventFilter(self)
        is_ours = now is not None and any(root.isAncestorOf(now) for root in self._roots)
        self._around = now if is_ours else None
        if self._around is not None:
            refresh_accessible_text(self._around)
            self._around.installEventFilter(self)
            self._around.destroyed.connect(self._forget_control)
        self._place_ring()

    def _place_ring(self) -> None:
        if self._ring is not None:
            self._ring.hide()
            self._ring.deleteLater()
            self._ring = None
        around = self._around
        holder = None if around is None else around.parentWidget()
        if around is None or holder is None or not around.isVisible():
            return
        room = QRect(around.geometry())
        if isinstance(holder, QSplitter):  # A child of a splitter would become one of its panes.
            holder, room = around, around.rect()
        self._ring = _Ring(holder, self._colour)
        self._ring.destroyed.connect(self._forget_ring)
        wide = room.adjusted(-_WIDTH, -_WIDTH, _WIDTH, _WIDTH)
        self._ring.setGeometry(wide.intersected(holder.rect()))
        self._ring.show()

    def _forget_control(self) -> None:
        # When a control is deleted, another control may already have the keyboard focus.
        if self.sender() is self._around:
            self._around = None

    def _forget_ring(self) -> None:
        if self.sender() is self._ring:
            self._ring = None
