"""The Tab key goes through what is seen in the order in which it is read."""

from functools import cmp_to_key
from typing import Any

from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QApplication, QScrollArea, QWidget


class ReadingOrder:
    """Mixed into a widget: Tab walks its controls line by line, whatever order they were made in.

    Qt's own order is that of making, and controls that move (the steps of a hanging stand in the
    line over the picture or on a page) take their old place along. After the last control the
    keyboard goes on to what Qt has next outside.
    """

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Give the keyboard to the control after, or before, the one that has it."""
        root: Any = self
        now = QApplication.focusWidget()
        controls = order_controls(root)
        at = [place for place, one in enumerate(controls) if now and _is_in(now, one)]
        if not at:
            return bool(super().focusNextPrevChild(forward))  # type: ignore[misc]
        place = at[-1] + (1 if forward else -1)
        inside = 0 <= place < len(controls)
        target = controls[place] if inside else _find_outside(root, forward)
        if target is None:
            return False
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        target.setFocus(reason)
        _scroll_to(target)
        return True


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


def _find_outside(root: QWidget, forward: bool) -> QWidget | None:
    """Return what Tab stops at next in Qt's own order that is not of `root`."""
    step = QWidget.nextInFocusChain if forward else QWidget.previousInFocusChain
    widget = step(root)
    while widget is not None and widget is not root:
        if not _is_in(widget, root) and widget.isVisible() and _is_stop(widget):
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
