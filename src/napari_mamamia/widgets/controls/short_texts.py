"""Widgets whose text is shortened if it does not fit."""

from typing import Any, Final

from qtpy.QtCore import QEvent, QSize, Qt, Signal
from qtpy.QtGui import QKeyEvent, QPainter
from qtpy.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
)

_SHORT_LETTERS: Final = 18
_USUAL_LETTERS: Final = 17
"""Number of letters "x" that fit into Qt's default line edit."""
_CURSOR: Final = 6
"""Additional pixels that a placeholder needs in the field (our choice)."""


class HintedField(QLineEdit):
    """A line edit that is wide enough for its placeholder text; its minimum width is Qt's.

    The signal `escaped` reports the key Escape.
    """

    escaped = Signal()

    def event(self, event: QEvent | None) -> bool:
        """Handle Escape before it reaches the shortcuts of the window."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.escaped.emit()
            return True
        return bool(super().event(event))

    def sizeHint(self) -> QSize:
        """Return Qt's size, at least as wide as the placeholder text."""
        hint, wide = super().sizeHint(), self.fontMetrics().horizontalAdvance
        more = wide(self.placeholderText()) + _CURSOR - _USUAL_LETTERS * wide("x")
        return QSize(hint.width() + max(more, 0), hint.height())


class NameLabel(QLabel):
    """A label whose name is shortened in the middle if necessary; the tooltip shows the full name.

    Parameters
    ----------
    letters
        The number of average letters that always fit.
    """

    def __init__(self, letters: int = 6) -> None:
        super().__init__()
        self._letters = letters
        self.setProperty("elided", True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        """Return space for the whole text, or for `letters` letters if that is less."""
        hint = self.sizeHint()
        least = self._letters * self.fontMetrics().averageCharWidth()
        return QSize(min(hint.width(), least), hint.height())

    def paintEvent(self, _event: Any) -> None:
        """Draw as much of the text as fits."""
        painter = QPainter(self)
        area = self.contentsRect()
        text, ground = self._text_for(area.width()), self.foregroundRole()
        self.style().drawItemText(
            painter, area, int(self.alignment()), self.palette(), True, text, ground
        )
        painter.end()

    def _text_for(self, width: int) -> str:
        metrics = self.fontMetrics()
        return str(metrics.elidedText(self.text(), Qt.TextElideMode.ElideMiddle, width))


class ShortLabel(NameLabel):
    """A label with a shorter text for small widths; the tooltip shows the full text.

    If even the short text does not fit, it is shortened in the middle like a name.
    """

    def __init__(self) -> None:
        super().__init__(_SHORT_LETTERS)
        self._short = ""

    def set_texts(self, text: str, short: str) -> None:
        """Set a text, and a short text for small widths."""
        self._short = short
        self.setText(text)

    def minimumSizeHint(self) -> QSize:
        """Return space for the short text, or for as many letters as a `NameLabel` shows."""
        hint, least, wide = self.sizeHint(), super().minimumSizeHint(), self._find_width
        return QSize(
            min(least.width(), hint.width() - wide(self.text()) + wide(self._short)), hint.height()
        )

    def _find_width(self, text: str) -> int:
        return int(self.fontMetrics().horizontalAdvance(text))

    def _text_for(self, width: int) -> str:
        if self._find_width(self.text()) <= width:
            return str(self.text())
        middle = Qt.TextElideMode.ElideMiddle
        return str(self.fontMetrics().elidedText(self._short, middle, width))


class DottedChoice(QComboBox):
    """A combo box whose text ends with an ellipsis if it does not fit; Qt would clip it."""

    def paintEvent(self, _event: Any) -> None:
        """Draw the box as Qt does, with as much of the text as fits."""
        painter, option, style = QStylePainter(self), QStyleOptionComboBox(), self.style()
        self.initStyleOption(option)
        kinds, field = QStyle.ComplexControl, QStyle.SubControl.SC_ComboBoxEditField
        painter.drawComplexControl(kinds.CC_ComboBox, option)
        room = style.subControlRect(kinds.CC_ComboBox, option, field, self).width()
        right = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(option.currentText, right, room)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()
