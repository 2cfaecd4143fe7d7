"""Controls that are large enough to click: no side under 24 pixels (WCAG 2.2, 2.5.8)."""

from typing import Final

from qtpy.QtCore import QModelIndex, QSize
from qtpy.QtGui import QWheelEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QSlider,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
)

LEAST: Final = 24
"""Minimum side of a click target in pixels."""
USUAL_LINE: Final = 14
"""Height in pixels of a line of text at napari's default font size."""
ROW_PADDING: Final = (LEAST - USUAL_LINE) // 2
"""Vertical padding in pixels of a list row.

There is no horizontal padding, because Qt ignores it when it wraps lines and cuts off the last
letters.
"""
_LEAST: Final = QSize(LEAST, LEAST)


class _Target:
    """A mixin for a control of at least 24 pixels, or more with a large text or font.

    A fixed minimum size would make controls with large text too small, because it overrides the
    size hint.
    """

    def sizeHint(self) -> QSize:
        """Return the usual size, with sides of at least 24 pixels."""
        hint: QSize = super().sizeHint()  # type: ignore[misc]
        return hint.expandedTo(_LEAST)

    def minimumSizeHint(self) -> QSize:
        """Return the usual minimum size, with sides of at least 24 pixels."""
        hint: QSize = super().minimumSizeHint()  # type: ignore[misc]
        return hint.expandedTo(_LEAST)


class SignButton(_Target, QToolButton):
    """A tool button."""


class CheckBox(_Target, QCheckBox):
    """A check box; its text is part of the target."""


class Slider(_Target, QSlider):
    """A slider; its whole height can be pressed."""


class ChoiceRows(QStyledItemDelegate):
    """A delegate that draws the rows of an open combo box like list rows.

    Qt's rows are only 23 pixels high.
    """

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        """Return the usual size, at least 24 pixels high."""
        hint: QSize = super().sizeHint(option, index)
        return hint.expandedTo(QSize(0, LEAST))


class ChoiceBox(_Target, QComboBox):
    """A combo box that ignores the mouse wheel, which scrolls the page instead.

    Otherwise the wheel could change an answer by accident.
    """

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Let the page handle the wheel."""
        event.ignore()
