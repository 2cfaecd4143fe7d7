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
"""Least side of a target in pixels."""
USUAL_LINE: Final = 14
"""Height in pixels of a line in napari's usual text."""
ROW_PADDING: Final = (LEAST - USUAL_LINE) // 2
"""Padding above and below the text of a list's row. There is none at its sides: Qt wraps lines as
if
it were not there, and cut the last letters.
"""
_LEAST: Final = QSize(LEAST, LEAST)


class _Target:
    """Mixin for a control: layouts give it at least 24 pixels, more for its text and font.

    A minimum set from outside would do the opposite with large text, because it overrides the hint.
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
    """Draws the lines of an open combo box like those of lists: Qt's own were 23 pixels high."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        """Return the usual size, at least 24 pixels high."""
        hint: QSize = super().sizeHint(option, index)
        return hint.expandedTo(QSize(0, LEAST))


class ChoiceBox(_Target, QComboBox):
    """A combo box that ignores the wheel, which scrolls the page instead.

    The wheel must not choose an answer by accident.
    """

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page."""
        event.ignore()
