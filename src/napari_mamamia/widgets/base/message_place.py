"""Where a message stands: a line of the panel that is kept free, so that nothing moves for it."""

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
from napari_mamamia.widgets.controls.controls import (
    column,
    label,
    named,
    set_level,
    set_sheet,
    tool_button,
)
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.soon import call_soon

_LEAST_HEIGHT = 24
_EDGE = 2
_ABOVE, _BELOW = 4, 6
"""Pixels between the lines of the panel, which a message takes too: a low screen has none over."""


class MessagePlace(QWidget):
    """A line kept free for messages, so that nothing moves below the pointer when one comes.

    Of what needs more the first words are seen, and all of it on demand. A warning or an error is
    laid over what lies below at once, and folds to its first words as the user goes on: with a
    click on it, a press elsewhere, or the keyboard in what it covers. `close_wanted` asks to take
    the message away.
    """

    close_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.refusal = label("header_refusal", tip=tr("Why the tool in hand does nothing here"))
        self.message = label("header_message", tip=tr("What happened last"))
        set_level(self.refusal, "warning")
        self._first_words: _FirstWords = named(
            _FirstWords(), "header_message_line", tr("How the message begins")
        )
        more = tr("Shows the whole message, or how it begins")
        self._more_button = tool_button("header_message_more", "▾", more, self._turn_over)
        self._close_button = tool_button(
            "header_message_close", "✕", tr("Closes this message"), self.close_wanted.emit
        )
        self._texts = column(self.refusal, self.message)
        self._area = PageArea(self._texts, "header_message_area", is_part=True)
        self._sheet = self._make_sheet()
        self._is_folded = self._is_listening = self._is_pressed = False
        for button in (self._more_button, self._close_button):
            button.setMinimumSize(_LEAST_HEIGHT, _LEAST_HEIGHT)
            button.installEventFilter(self)

    # ----------------------------------------------------------- for the header

    def say(self, level: str, text: str) -> None:
        """Show a message, a warning or an error whole; "" takes it away."""
        self.message.setText(text)
        self.message.setToolTip(text)
        set_level(self.message, level)
        self._is_folded = level == "hint"
        self.lay_out()

    def refuse(self, text: str) -> None:
        """Say why the tool in hand does nothing; "" where it works."""
        self.refusal.setText(text)
        self.lay_out()

    def lay_out(self) -> None:
        """Lay what is said over the line, and over what lies below as far as it needs."""
        refusal, message = self.refusal.text(), self.message.text()
        self.refusal.setVisible(bool(refusal))
        self.message.setVisible(bool(message))
        self._close_button.setVisible(bool(message))
        host = self._find_host()
        room = QRect(self.mapTo(host, QPoint(0, 0)), self.size()).adjusted(0, -_ABOVE, 0, _BELOW)
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
        self._heed_outside(is_over and bool(refusal or message))

    # -------------------------------------------------------------------- inner

    def event(self, event: QEvent) -> bool:
        """Follow the place in the panel, and the size of texts."""
        is_done = bool(super().event(event))
        kinds = QEvent.Type
        if event.type() in (kinds.FontChange, kinds.StyleChange, kinds.Polish):
            self._keep_line()
        if event.type() in (kinds.Move, kinds.Resize, kinds.Show, kinds.FontChange):
            self.lay_out()
        return is_done

    def eventFilter(self, watched: QObject, event: Any) -> bool:
        """Take the second of two clicks for no click on what came between; fold for who goes on."""
        kind, kinds = event.type(), QEvent.Type
        if watched in (self._more_button, self._close_button):
            return bool(kind == kinds.MouseButtonDblClick)
        if watched is self._sheet.parentWidget() and kind == kinds.Resize:
            self.lay_out()
        if kind in (kinds.MouseButtonPress, kinds.MouseButtonDblClick):
            if isinstance(watched, QWidget) and not self._is_ours(watched):
                self._fold_away()
            self._is_pressed = watched is self.message and kind == kinds.MouseButtonPress
        elif kind == kinds.MouseButtonRelease and watched is self.message and self._is_pressed:
            if not self.message.hasSelectedText():
                call_soon(self, self._fold_away)
        elif kind == kinds.KeyPress:
            self._yield_to(None, QApplication.focusWidget())
        return False

    def _make_sheet(self) -> QFrame:
        sheet = QFrame(self)
        sheet.setObjectName("header_message_sheet")
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
        """Return where the header ends: what stands beside the line may be laid over, too."""
        header = self.parentWidget() or self
        return int(header.mapTo(host, header.rect().topRight()).x())

    def _find_height(self, width: int) -> int:
        signs: list[QToolButton] = [self._more_button, self._close_button]
        beside = sum(one.sizeHint().width() + _EDGE for one in signs if not one.isHidden())
        layout: Any = self._texts.layout()
        return int(layout.heightForWidth(width - beside - 2 * _EDGE)) + 2 * _EDGE

    def _turn_over(self) -> None:
        self._is_folded = not self._is_folded
        self.lay_out()

    def _fold_away(self) -> None:
        self._is_folded = True
        self.lay_out()

    def _heed_outside(self, listens: bool) -> None:
        app: Any = QApplication.instance()
        if app is None or listens == self._is_listening:
            return
        self._is_listening = listens
        if listens:
            app.installEventFilter(self)
            app.focusChanged.connect(self._yield_to)
        else:
            app.removeEventFilter(self)
            app.focusChanged.disconnect(self._yield_to)

    def _yield_to(self, _before: QWidget | None, now: QWidget | None) -> None:
        """Fold where what has the keyboard is covered."""
        host = self._sheet.parentWidget()
        if now is None or self._is_ours(now) or not host.isAncestorOf(now):
            return
        if self._sheet.geometry().intersects(QRect(now.mapTo(host, QPoint(0, 0)), now.size())):
            self._fold_away()

    def _is_ours(self, widget: QWidget) -> bool:
        return widget is self._sheet or self._sheet.isAncestorOf(widget)


class _FirstWords(QLabel):
    """The beginning of a text, in one line."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("elided", True)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def paintEvent(self, _event: Any) -> None:
        """Draw what has room."""
        painter = QPainter(self)
        place = self.contentsRect()
        line = " ".join(self.text().split())
        text = self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, place.width())
        self.style().drawItemText(
            painter, place, int(self.alignment()), self.palette(), True, text,
            self.foregroundRole(),
        )  # fmt: skip
        painter.end()
