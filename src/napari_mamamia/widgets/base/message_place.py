"""The message line: a line of the panel reserved so that messages do not move the controls."""

from typing import Any

from qtpy.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from qtpy.QtGui import QPainter
from qtpy.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QLabel,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.controls.controls import (
    column,
    label,
    named,
    set_level,
    set_sheet,
    tool_button,
)
from napari_mamamia.widgets.controls.inputs import InputWatch
from napari_mamamia.widgets.controls.page_area import PageArea

_LEAST_HEIGHT = 24
_EDGE = 2
_ABOVE, _BELOW = 4, 6
"""Spacing in pixels above and below the line, which a message may use on a low screen."""


class MessagePlace(QWidget):
    """A reserved line for messages, so that controls stay under the pointer.

    A long message shows its first words, and its full text on demand. A warning or an error is
    shown in full immediately and covers the controls below, except for a line set by `spare`. The
    message collapses to its first words at any click, or when a covered control gets the keyboard
    focus. The signal `close_wanted` requests to remove the message.
    """

    close_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.refusal = label("header_refusal", tip=tr("Why the active tool has no effect here."))
        self.message = label("header_message", tip=tr("The last message."))
        set_level(self.refusal, "warning")
        self._first_words: _FirstWords = named(
            _FirstWords(), "header_message_line", tr("The beginning of the message.")
        )
        more = tr("Shows the whole message, or only its beginning.")
        self._more_button = tool_button("header_message_more", "▾", more, self._turn_over)
        self._close_button = tool_button(
            "header_message_close", "✕", tr("Closes this message."), self.close_wanted.emit
        )
        self._texts = column(self.refusal, self.message)
        self._area = PageArea(self._texts, "header_message_area", is_part=True)
        self._sheet = self._make_sheet()
        self._is_folded = self._is_pressed = self._is_alone = False
        self._spared: QWidget | None = None
        self.message.installEventFilter(self)
        for button in (self._more_button, self._close_button):
            button.setMinimumSize(_LEAST_HEIGHT, _LEAST_HEIGHT)
            button.installEventFilter(self)

    # ----------------------------------------------------------- for the header

    def spare(self, line: QWidget) -> None:
        """Never cover this line of the panel; a long message goes below it."""
        self._spared = line
        line.installEventFilter(self)

    def set_alone(self, is_alone: bool) -> None:
        """Set whether the line has no neighbours, which lets a message use the remaining space."""
        if self._is_alone != is_alone:
            self._is_alone = is_alone
            self.lay_out()

    def say(self, level: str, text: str) -> None:
        """Show a message, with warnings and errors in full; "" removes it."""
        self.message.setText(text)
        self.message.setToolTip(text)
        set_level(self.message, level)
        self._is_folded = level == "hint"
        self.lay_out()

    def refuse(self, text: str) -> None:
        """Show why the active tool does nothing; "" removes the text."""
        self.refusal.setText(text)
        self.lay_out()

    def lay_out(self) -> None:
        """Place the message over the line, and over the controls below as far as necessary."""
        refusal, message = self.refusal.text(), self.message.text()
        self.refusal.setVisible(bool(refusal))
        self.message.setVisible(bool(message))
        self._close_button.setVisible(bool(message))
        host = self._find_host()
        room = QRect(self.mapTo(host, QPoint(0, 0)), self.size()).adjusted(0, -_ABOVE, 0, _BELOW)
        if self._is_alone:
            room.setRight(self._find_right_edge(host))
        self._more_button.hide()
        high = self._find_height(room.width())
        is_long = high > room.height()
        if is_long:
            self._more_button.show()
            high = self._find_height(room.width())
        is_over = is_long and not self._is_folded
        if is_over:
            room.setRight(self._find_right_edge(host))
            high = self._find_height(room.width())
            room.setHeight(high)
            room.moveTop(self._find_top(host, room))
        self._more_button.setText("▴" if is_over else "▾")
        self._area.setVisible(is_over or not is_long)
        self._first_words.setVisible(is_long and self._is_folded)
        self._first_words.setText(refusal or message)
        self._first_words.setToolTip("\n".join(text for text in (refusal, message) if text))
        set_level(self._first_words, self.message.property("level") if not refusal else "warning")
        most = host.height() - room.top()
        policies = Qt.ScrollBarPolicy
        is_too_long = is_over and high > most
        bar = policies.ScrollBarAsNeeded if is_too_long else policies.ScrollBarAlwaysOff
        self._area.setVerticalScrollBarPolicy(bar)
        room.setHeight(min(high, most) if is_over else room.height())
        set_sheet(self._sheet, is_over)
        if self._sheet.parentWidget() is not host:
            self._sheet.setParent(host)
        self._sheet.setGeometry(room)
        self._sheet.setVisible(bool(refusal or message))
        self._sheet.raise_()
        self._sheet.set_over(is_over and bool(refusal or message))

    # -------------------------------------------------------------------- inner

    def event(self, event: QEvent) -> bool:
        """Update the layout when the position in the panel or the font size changes."""
        is_done = bool(super().event(event))
        kinds = QEvent.Type
        if event.type() in (kinds.FontChange, kinds.StyleChange, kinds.Polish):
            self._keep_line()
        if event.type() in (kinds.Move, kinds.Resize, kinds.Show, kinds.FontChange):
            self.lay_out()
        return is_done

    def eventFilter(self, watched: QObject, event: Any) -> bool:
        """Ignore the second click of a double click on a new control; collapse at a click.

        The filter also follows the line set by `spare` when other widgets are inserted above this
        line.
        """
        kind, kinds = event.type(), QEvent.Type
        if watched is self._spared:
            if kind in (kinds.Move, kinds.Resize, kinds.Show):
                self.lay_out()
            return False
        if watched is not self.message:
            return bool(kind == kinds.MouseButtonDblClick)
        if kind in (kinds.MouseButtonPress, kinds.MouseButtonDblClick):
            self._is_pressed = kind == kinds.MouseButtonPress
        is_click = kind == kinds.MouseButtonRelease and self._is_pressed
        if is_click and not self.message.hasSelectedText():
            call_later(self, self._fold_away)
        return False

    def _make_sheet(self) -> "_Sheet":
        sheet = _Sheet(self)
        sheet.left.connect(self._fold_away)
        sheet.room_changed.connect(self.lay_out)
        lines = QGridLayout(sheet)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(_EDGE)
        top = Qt.AlignmentFlag.AlignTop
        lines.addWidget(self._area, 0, 0)
        lines.addWidget(self._first_words, 0, 0)
        lines.addWidget(self._more_button, 0, 1, top)
        lines.addWidget(self._close_button, 0, 2, top)
        lines.setColumnStretch(0, 1)
        sheet.hide()
        return sheet

    def _keep_line(self) -> None:
        self._first_words.ensurePolished()
        self._close_button.ensurePolished()
        words, sign = self._first_words.sizeHint().height(), self._more_button.sizeHint().height()
        self.setFixedHeight(max(_LEAST_HEIGHT, words + 2 * _EDGE, sign) - _ABOVE - _BELOW)

    def _find_host(self) -> QWidget:
        header = self.parentWidget()
        panel = None if header is None else header.parentWidget()
        return panel or header or self

    def _find_right_edge(self, host: QWidget) -> int:
        header = self.parentWidget() or self
        return int(header.mapTo(host, header.rect().topRight()).x())

    def _find_top(self, host: QWidget, room: QRect) -> int:
        line = self._spared
        if line is None or not line.isVisible() or not host.isAncestorOf(line):
            return int(room.top())
        q_rect = QRect(line.mapTo(host, QPoint(0, 0)), line.size())
        return int(q_rect.bottom() + 1 if q_rect.intersects(room) else room.top())

    def _find_height(self, width: int) -> int:
        signs: list[QToolButton] = [self._more_button, self._close_button]
        beside = sum(sign.sizeHint().width() + _EDGE for sign in signs if not sign.isHidden())
        layout: Any = self._texts.layout()
        return int(layout.heightForWidth(width - beside - 2 * _EDGE)) + 2 * _EDGE

    def _turn_over(self) -> None:
        self._is_folded = not self._is_folded
        self.lay_out()

    def _fold_away(self) -> None:
        self._is_folded = True
        self.lay_out()


class _Sheet(QFrame):
    """The sheet on which a message covers its line and the controls below.

    The signal `left` is emitted when the user continues elsewhere, and `room_changed` when the
    parent is resized. All connections end when the sheet is deleted.
    """

    left = Signal()
    room_changed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("header_message_sheet")
        self._inputs = InputWatch(self)
        self._inputs.pressed.connect(self._heed_press)
        self._inputs.key_pressed.connect(self._heed_key)
        self._host: QWidget | None = None

    def set_over(self, is_over: bool) -> None:
        """Start or stop watching for user actions outside the message while it covers controls."""
        host = self.parentWidget() if is_over else None
        if host is self._host:
            return
        application: Any = QApplication.instance()
        if self._host is not None:
            self._inputs.end()
            application.focusChanged.disconnect(self._yield_to)
            self._host.removeEventFilter(self)
        if host is not None:
            self._inputs.begin()
            application.focusChanged.connect(self._yield_to)
            host.installEventFilter(self)
        self._host = host

    def eventFilter(self, _host: QObject, event: QEvent) -> bool:
        """Emit `room_changed` when the parent is resized."""
        if event.type() == QEvent.Type.Resize:
            self.room_changed.emit()
        return False

    def _heed_press(self, place: QPoint) -> None:
        if not self.rect().contains(self.mapFromGlobal(place)):
            self.left.emit()

    def _heed_key(self) -> None:
        self._yield_to(None, QApplication.focusWidget())

    def _yield_to(self, _before: QWidget | None, now: QWidget | None) -> None:
        host = self._host
        if host is None or now is None or now is self or self.isAncestorOf(now):
            return
        if host.isAncestorOf(now):
            covered = QRect(now.mapTo(host, QPoint(0, 0)), now.size())
            if self.geometry().intersects(covered):
                self.left.emit()


class _FirstWords(QLabel):
    """The beginning of a text, on one line."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("elided", True)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def paintEvent(self, _event: Any) -> None:
        """Draw as much of the text as fits."""
        painter = QPainter(self)
        area = self.contentsRect()
        line = " ".join(self.text().split())
        text = self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, area.width())
        self.style().drawItemText(
            painter, area, int(self.alignment()), self.palette(), True, text,
            self.foregroundRole(),
        )  # fmt: skip
        painter.end()
