"""Controls that are large enough to hit: no side under 24 pixels (WCAG 2.2, 2.5.8)."""

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
"""Pixels that a side of a target has at least."""
USUAL_LINE: Final = 14
"""Height in pixels of a line in napari's usual text."""
ROW_PADDING: Final = (LEAST - USUAL_LINE) // 2
"""Above and below the text of a list's row. At its sides there is none: Qt breaks lines as if
nothing stood there, and cut the last letters."""
_LEAST: Final = QSize(LEAST, LEAST)


class _Target:
    """Mixed into a control: layouts give it room enough, as its text and font want or more.

    A minimum set from outside would do the opposite with large text: it overrules the hint.
    """

    def sizeHint(self) -> QSize:
        """Return the usual size, or 24 pixels where a side is shorter."""
        hint: QSize = super().sizeHint()  # type: ignore[misc]
        return hint.expandedTo(_LEAST)

    def minimumSizeHint(self) -> QSize:
        """Return the usual least size, or 24 pixels where a side is shorter."""
        hint: QSize = super().minimumSizeHint()  # type: ignore[misc]
        return hint.expandedTo(_LEAST)


class SignButton(_Target, QToolButton):
    """A tool button."""


class CheckBox(_Target, QCheckBox):
    """A tick box; its text is part of the target."""


class Slider(_Target, QSlider):
    """A slider; its whole height can be pressed."""


class ChoiceRows(QStyledItemDelegate):
    """Draws the lines of an open choice as those of lists: Qt's own were 23 pixels high."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        """Return the usual size, or 24 pixels of height where it is lower."""
        hint: QSize = super().sizeHint(option, index)
        return hint.expandedTo(QSize(0, LEAST))


class ChoiceBox(_Target, QComboBox):
    """A choice that a wheel turned over it leaves as it is: the wheel moves the page.

    An answer that nobody gave must not come of it.
    """

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page."""
        event.ignore()
