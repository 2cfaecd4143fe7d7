"""The permanent header with the open case, visible masks, saved state and running job."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from qtpy.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from qtpy.QtGui import QPainter
from qtpy.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QGridLayout,
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.progress import Progress
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import MASK_ROLES, Role
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.controls.controls import (
    button,
    chip_icon,
    column,
    label,
    named,
    row,
    set_level,
    set_sheet,
    tool_button,
)
from napari_mamamia.widgets.controls.inputs import InputWatch
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.progress_bar import ProgressBar
from napari_mamamia.widgets.controls.short_texts import HintedField, NameLabel, ShortLabel

_LEAST_HEIGHT = 24
_EDGE = 2
_ABOVE, _BELOW = 4, 6
"""Spacing in pixels above and below the line, which a message may use on a low screen."""


class MessagePlace(QWidget):
    """A line reserved for messages, so that controls remain under the pointer.

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
        for small_button in (self._more_button, self._close_button):
            small_button.setMinimumSize(_LEAST_HEIGHT, _LEAST_HEIGHT)
            small_button.installEventFilter(self)

    # ----------------------------------------------------------- for the header

    def spare(self, line: QWidget) -> None:
        """Set a line of the panel that messages never cover; a long message is shown below it."""
        self._spared = line
        line.installEventFilter(self)

    def set_alone(self, is_alone: bool) -> None:
        """Set whether the line has no neighbours, so that a message may use the remaining space."""
        if self._is_alone != is_alone:
            self._is_alone = is_alone
            self.lay_out()

    def say(self, level: str, text: str) -> None:
        """Show a message, in full if it is a warning or an error; "" removes the message."""
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
    """The frame in which a message covers its line and the controls below.

    The signal `left` is emitted when the user continues elsewhere, and `room_changed` when the
    parent is resized. All connections end when the frame is deleted.
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


_LINE_HEIGHT = 24
_CASE_LETTERS = 18
"""Number of letters of the case id that always remain visible, to identify the exam."""
_PROGRESS_WIDTH = 60
_FEWEST_LETTERS = 8
"""Minimum number of visible letters of the running job's title; the tooltip has the full title."""
_MOST_READER_WIDTH = 130
_CASE_TIP = tr("The open case.")
_SAVED_TIP = tr("Whether your mask is saved and its strokes are recorded.")


@dataclass(frozen=True, slots=True)
class MaskChip:
    """A mask of the case in the header: role, author, and whether it is visible."""

    role: Role
    name: str
    visible: bool


class Header(QFrame):
    """The header; its signals are user requests, and `mask_toggled` carries a role and a bool.

    Attributes
    ----------
    name_keys
        Function that replaces the default keys in a text with the user's keys.
    """

    previous_wanted = Signal()
    next_wanted = Signal()
    lesion_wanted = Signal()
    cancel_wanted = Signal()
    keys_wanted = Signal()
    napari_wanted = Signal()
    view_wanted = Signal(bool)
    reader_wanted = Signal()
    reader_given = Signal(str)
    reader_cancelled = Signal()
    reader_asked = Signal(bool)
    mask_toggled = Signal(object, bool)
    unblinding_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name_keys: Callable[[str], str] = str
        self.setObjectName("mamamia_header")
        self._chips = {role: self._make_chip(role) for role in MASK_ROLES}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        self._case_line, self._mask_line = self._make_case_line(), self._make_mask_line()
        layout.addWidget(self._case_line)
        layout.addWidget(self._make_blind_line())
        self._asked_from: QWidget | None = None
        self._reader_line = self._make_reader_line()
        # The question replaces the masks, so that controls below stay under the pointer.
        self._masks = column(self._mask_line)
        self._room = QStackedWidget()
        for line in (self._masks, self._reader_line):
            self._room.addWidget(line)
        self._room.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._state_line: QWidget = row(self._make_state(), self.view, self.reader)
        self._state_line.layout().setStretch(0, 1)
        self._place = MessagePlace()
        self._place.close_wanted.connect(lambda: self.say(Level.HINT, ""))
        self.message, self.refusal = self._place.message, self._place.refusal
        self._level = Level.HINT
        self._lines = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        for line in (self._room, self._state_line, self._place):
            self._lines.addWidget(line)
        layout.addLayout(self._lines)
        self.set_blind("")
        self.set_case("", "")
        self.set_masks(())
        self.set_saved("")

    # ------------------------------------------------------------- for the dock

    def set_case(self, case_id: str, position: str) -> None:
        """Show the open case and its position in the queue, such as "3 / 12"."""
        self.case.setText(case_id or tr("no case open"))
        self.case.setToolTip(f"{_CASE_TIP}: {case_id}" if case_id else _CASE_TIP)
        self.position.setText(position)
        for control in (self.previous, self.next):
            control.setEnabled(bool(position))
        self.lesion.setEnabled(bool(case_id))

    def set_blind(self, text: str, *, may_end: bool = True) -> None:
        """Show which data are hidden from the reader; "" means that nothing is hidden."""
        self.blind.setText(text)
        self.unblind.setVisible(may_end)
        self._blind_line.setVisible(bool(text))
        self._ask_unblinding(False)

    def set_masks(self, chips: Sequence[MaskChip]) -> None:
        """Show a button for each mask, checked if the mask is visible."""
        there = {chip.role: chip for chip in chips}
        for role, control in self._chips.items():
            chip = there.get(role)
            control.setVisible(chip is not None)
            control.setChecked(chip is not None and chip.visible)
            whose = tr(" by {name}", name=chip.name) if chip and chip.name else ""
            words = tr(
                "{role}{whose}: click to show or hide this mask.", role=tr(str(role)), whose=whose
            )
            control.setToolTip(self.name_keys(with_key(words, "hide_masks")))

    def dress(self, text_colour: str) -> None:
        """Draw the colour squares of the masks with a border that contrasts with the theme."""
        for role, chip in self._chips.items():
            chip.setIcon(chip_icon(MASK_COLOURS[role], text_colour))

    def set_saved(self, text: str, level: Level = Level.HINT, short: str = "") -> None:
        """Show the saved state of the edited mask; show `short` if `text` does not fit."""
        self.saved.set_texts(text, short or text)
        self.saved.setToolTip(f"{_SAVED_TIP}: {text}" if text else _SAVED_TIP)
        set_level(self.saved, level)

    def set_refusal(self, text: str) -> None:
        """Show why the active tool does nothing on the displayed image; "" removes the text."""
        self._place.refuse(self.name_keys(text))

    def set_reader(self, name: str | None, *, is_fixed: bool = False) -> None:
        """Show the reader's name, or that none is set; `is_fixed` locks the name."""
        self.reader.setText(name or tr("reader?"))
        whose = tr("reader: {name}", name=name) if name else tr("No reader name set")
        change = "" if is_fixed else tr("{whose}; click to change the name.", whose=whose)
        self.reader.setToolTip(
            change or tr("{whose}; the name is fixed while the study is open.", whose=whose)
        )
        before, self._asked_from = self._asked_from, None
        with suppress(RuntimeError):  # The widget may have been deleted by now.
            if before is not None and before.isVisible() and self._reader_line.isVisible():
                before.setFocus()
        self._turn_room(self._masks)
        self.reader_asked.emit(False)

    def ask_reader(self, known: str | None) -> None:
        """Ask for the reader's name in the line that shows the masks."""
        self.reader_name.setText(known or "")
        self._who.setText(tr("Reading as") if known else tr("Reader name?"))
        self._asked_from = QApplication.focusWidget()
        self._turn_room(self._reader_line)
        self.reader_name.setFocus()
        self.reader_asked.emit(True)

    def show_progress(self, title: str, progress: Progress | None = None) -> None:
        """Show the running job and its progress."""
        text = title if progress is None or not progress.text else progress.text
        # A range of 0 to 0 is Qt's progress bar of unknown length.
        self.progress.setRange(0, 0 if progress is None or progress.total == 0 else 1000)
        if progress is not None:
            self.progress.setValue(round(progress.fraction * 1000))
        room = max(self.state.width() - _PROGRESS_WIDTH - 2 * _LINE_HEIGHT, 2 * _LINE_HEIGHT)
        metrics = self.progress_text.fontMetrics()
        words = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        has_room = words == text or len(words) > _FEWEST_LETTERS
        self.progress_text.setText(words if has_room else "")
        self.progress_text.setToolTip(f"{title}: {text}")
        self.view.hide()  # The space of this line is used for the running job.
        self.state.setCurrentIndex(1)

    def hide_progress(self) -> None:
        """Show the saved state again."""
        self.view.show()
        self.state.setCurrentIndex(0)

    def say(self, level: Level, text: str) -> None:
        """Show a message until it is closed or replaced; "" removes it."""
        self._place.say(level, self.name_keys(text))
        self._level = level

    def withdraw(self, text: str) -> None:
        """Remove a hint if it is still shown."""
        if self._level == Level.HINT and self.message.text() == self.name_keys(text):
            self.say(Level.HINT, "")

    def spare(self, line: QWidget) -> None:
        """Set a line of the panel that messages never cover."""
        self._place.spare(line)

    def drop_hint(self) -> None:
        """Remove a hint about the last action; warnings and errors are kept."""
        if self._level == Level.HINT:
            self.say(Level.HINT, "")

    def lend(self) -> None:
        """Move the case and reader controls to the line above the image."""
        self._put_controls(self._mask_line, self.view)
        for line in (self._case_line, self._state_line):
            line.hide()
        self.saved.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def show_image_controls(self, shown: bool) -> None:
        """Show or hide the controls of the image.

        Without the image controls, the remaining controls are in one line with fixed columns.
        """
        self._mask_line.setVisible(shown)
        ways = QBoxLayout.Direction
        self._lines.setDirection(ways.TopToBottom if shown else ways.RightToLeft)
        self._lines.setStretchFactor(self._place, 0 if shown else 1)
        self._turn_room(self._room.currentWidget())

    def take_back(self) -> None:
        """Move the controls back from the line above the image, and show all controls."""
        steps = (self.previous, self.next)
        self._put_controls(self._case_line, self.case, self.position, *steps)
        self._put_controls(self._case_line, self.napari, self.keys)
        self._put_controls(self._state_line, self.state, self.view, self.reader)
        for line in (self._case_line, self._state_line):
            line.show()
        self.saved.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    # -------------------------------------------------------------------- inner

    def _turn_room(self, line: QWidget) -> None:
        self._room.setCurrentWidget(line)
        self._place.set_alone(line is self._masks and self._mask_line.isHidden())

    @staticmethod
    def _put_controls(line: QWidget, *controls: QWidget) -> None:
        for control in controls:
            line.layout().addWidget(control)

    def _make_case_line(self) -> QWidget:
        self.case: NameLabel = named(NameLabel(_CASE_LETTERS), "header_case", _CASE_TIP)
        self.case.setProperty("heading", True)
        self.position: QLabel = named(
            QLabel(),
            "header_position",
            tr("The position in the list of cases, in its current order and filter."),
        )
        self.previous = tool_button(
            "header_previous",
            "◀",
            with_key(tr("Opens the previous case."), "previous_case"),
            self.previous_wanted.emit,
        )
        self.next = tool_button(
            "header_next",
            "▶",
            with_key(tr("Opens the next case."), "next_case"),
            self.next_wanted.emit,
        )
        self.napari = tool_button(
            "header_napari",
            "☰",
            with_key(tr("Shows or hides napari's menu and panels."), "reading"),
            self.napari_wanted.emit,
        )
        self.keys = tool_button(
            "header_keys", "?", with_key(tr("Shows all shortcuts."), "keys"), self.keys_wanted.emit
        )
        self.reader = tool_button(
            "header_reader",
            "",
            tr("Changes the reader's name."),
            self.reader_wanted.emit,
        )
        self.reader.setProperty("framed", True)
        self.reader.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.reader.setMaximumWidth(_MOST_READER_WIDTH)
        steps = (self.previous, self.next)
        line = row(self.case, self.position, *steps, self.napari, self.keys)
        line.layout().setStretch(0, 1)
        return line

    def _make_mask_line(self) -> QWidget:
        for chip in self._chips.values():
            chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.lesion = tool_button(
            "header_lesion",
            "◎",
            with_key(tr("Goes to the tumour: the largest part of the displayed mask."), "lesion"),
            self.lesion_wanted.emit,
        )
        self.view = tool_button(
            "header_view",
            tr("View ▾"),
            tr("Shows or hides the display controls: planes, MIP, contrast, cine."),
            lambda: self.view_wanted.emit(self.view.isChecked()),
        )
        self.view.setCheckable(True)
        self.view.setProperty("framed", True)
        return row(*self._chips.values(), 1, self.lesion)

    def _make_chip(self, role: Role) -> QToolButton:
        chip = tool_button(f"header_mask_{role}", tr(str(role)), "", lambda: None)
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setCheckable(True)
        chip.setProperty("chip", True)
        # Not `toggled`, because `set_masks` also checks the chips without a request by the user.
        chip.clicked.connect(lambda checked: self.mask_toggled.emit(role, checked))
        return chip

    def _make_state(self) -> QStackedWidget:
        self.saved: ShortLabel = named(ShortLabel(), "header_saved", _SAVED_TIP)
        self.progress: ProgressBar = named(
            ProgressBar(), "header_progress", tr("The progress of the running job.")
        )
        self.progress.setFixedSize(_PROGRESS_WIDTH, 8)
        self.progress_text: QLabel = named(QLabel(), "header_progress_text", tr("The running job."))
        self.progress_text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.cancel = tool_button(
            "header_cancel",
            "✕",
            tr("Stops the running job; partial results are removed."),
            lambda: None,
        )
        self.cancel.clicked.connect(lambda: self.cancel_wanted.emit())
        running = row(self.progress, self.progress_text, self.cancel)
        running.layout().setStretch(1, 1)
        self.state = QStackedWidget()
        self.state.addWidget(self.saved)
        self.state.addWidget(running)
        self.state.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        return self.state

    def _make_blind_line(self) -> QWidget:
        self.blind = label("header_blind", tip=tr("What is hidden in this blinded reading."))
        self.unblind = tool_button(
            "header_unblind",
            tr("End…"),
            tr("Ends the blinded reading and records the end."),
            lambda: self._ask_unblinding(True),
        )
        self.unblind.setProperty("framed", True)
        line = row(self.blind, self.unblind)
        line.layout().setStretch(0, 1)
        question = label(
            "header_unblind_question",
            tr(
                "End the blinded reading? All hidden data are then shown. The end and its time "
                "are recorded permanently with your mask of this case."
            ),
            tr("Asks for confirmation before hidden data are shown."),
        )
        confirm = button(
            "header_unblind_confirm",
            tr("End blind reading"),
            tr("Shows all hidden data and records the end of the blinded reading."),
            self._want_unblinding,
        )
        keep = button(
            "header_unblind_keep",
            tr("Stay blinded"),
            tr("Continues the blinded reading with hidden data."),
            lambda: self._ask_unblinding(False),
        )
        self._unblind_question: QWidget = column(question, row(confirm, keep, 1))
        self._blind_line: QWidget = column(line, self._unblind_question)
        return self._blind_line

    def _want_unblinding(self) -> None:
        self._ask_unblinding(False)
        self.unblinding_wanted.emit()

    def _ask_unblinding(self, ask: bool) -> None:
        self._unblind_question.setVisible(ask)

    def _make_reader_line(self) -> QWidget:
        self.reader_name: HintedField = named(
            HintedField(),
            "header_reader_name",
            tr("Enter your name or initials, under which your masks are saved; Esc cancels."),
        )
        self.reader_name.setPlaceholderText(tr("your name or initials"))
        self.reader_name.returnPressed.connect(self._give_reader)
        self.reader_name.escaped.connect(self.reader_cancelled.emit)
        accept = button(
            "header_reader_ok",
            tr("OK"),
            tr("Uses this name, and suggests the name next time."),
            self._give_reader,
            primary=True,
        )
        self._who = QLabel(tr("Reader name?"))
        return row(self._who, self.reader_name, accept)

    def _give_reader(self) -> None:
        name = self.reader_name.text().strip()
        if name:
            self.reader_given.emit(name)
