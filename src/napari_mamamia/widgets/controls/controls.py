"""Controls with an objectName and a tooltip, which look the same on every page."""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, TypeAlias

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QColor, QIcon, QPainter, QPixmap
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.widgets.adapter.adapter import ThemeColours
from napari_mamamia.widgets.controls.colours import (
    ERROR_COLOURS,
    QUIET_TEXT_COLOURS,
    WARNING_COLOURS,
)
from napari_mamamia.widgets.controls.targets import ROW_PADDING, ChoiceRows, SignButton
from napari_mamamia.widgets.controls.wrapped import WrappedLabel

_SPACE = 6
_NO_MARGINS = (0, 0, 0, 0)
Part: TypeAlias = QWidget | int | tuple[QWidget, int]
Margins: TypeAlias = tuple[int, int, int, int] | None
_CALLED = "called"
"""Property of a control that has an explicit accessible name for screen readers."""
MOST_LETTERS = 44
"""Maximum length of an accessible name; a longer text becomes the description instead."""
_TICK = 12
"""Side length of a check box indicator in pixels, at napari's default font size."""
_TAB = 18
"""Tab height in pixels, large enough to click, without napari's borders, which add 6 pixels."""
_USUAL_POINTS = 9
_SIGNS = " ▾▸▶◀‹›✕×◎☰…:+−✓●"
_FIELDS = QComboBox, QLineEdit, QAbstractSpinBox
"""Widgets whose accessible name is the text before them in a row."""


class FittedLabel(QLabel):
    """A label that no layout makes narrower than its text, so that the text is never cut off.

    Parameters
    ----------
    text
        The initial text.
    samples
        Other texts that must fit, so that aligned lines, or a growing number, do not move.
    """

    def __init__(self, text: str = "", samples: Iterable[str] = ()) -> None:
        super().__init__(text)
        self._samples = tuple(samples)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        """Return the size of the text, at least as wide as the widest sample."""
        hint = super().minimumSizeHint()
        beside = hint.width() - self.fontMetrics().size(0, self.text()).width()
        samples = (self.fontMetrics().horizontalAdvance(text) + beside for text in self._samples)
        return QSize(max(hint.width(), *samples, 0), hint.height())

    def sizeHint(self) -> QSize:
        """Return the minimum size, because no more space is needed."""
        return self.minimumSizeHint()


def row_name(text: str, among: Iterable[str]) -> FittedLabel:
    """Return the label at the start of a row, as wide as the widest name in `among`."""
    return FittedLabel(text, among)


class FormFold(QWidget):
    """A collapsible part of a form, with a summary line while it is collapsed."""

    def __init__(self, name: str, text: str, tip: str, *parts: QWidget) -> None:
        super().__init__()
        self._text = text
        self.head: QPushButton = button(name, text, tip, lambda: self.unfold(not self.is_open))
        self.head.setProperty("section", True)
        self.said = label(f"{name}_said", tip=tip)
        set_level(self.said, "hint")
        self._body = column(*parts)
        fill_column(self, self.head, self.said, self._body, spacing=2)
        self.is_open = True
        self.unfold(False)

    def unfold(self, is_open: bool) -> None:
        """Show the content, or only the summary line."""
        self.is_open = is_open
        self.head.setText(f"{'▾' if is_open else '▸'}  {self._text}")
        self._body.setVisible(is_open)
        self.said.setVisible(not is_open)


def named(widget: Any, name: str, tip: str) -> Any:
    """Set the objectName and tooltip of a widget, and return the widget.

    The line edit of a spin box and the bar of a tab widget get the same name and tooltip. A screen
    reader reads a short accessible name, and the tooltip as the description. The name is the
    widget's text, or otherwise the preceding text in its `row`, or otherwise the words of its
    objectName.
    """
    widget.setObjectName(name)
    widget.setToolTip(tip)
    if isinstance(widget, QAbstractButton):
        widget.setAccessibleName(_name_by_tip(tip) or _speak_name(name))
    elif not isinstance(widget, QLabel):
        widget.setAccessibleName(_speak_name(name))
    refresh_accessible_text(widget)
    _let_tab_go(widget)
    if isinstance(widget, QComboBox):
        widget.setItemDelegate(ChoiceRows(widget))
    elif isinstance(widget, QSpinBox | QDoubleSpinBox):
        named(widget.lineEdit(), f"{name}_text", tip)
        call_by(widget, _speak_name(name))
    elif isinstance(widget, QTabWidget):
        named(widget.tabBar(), f"{name}_bar", tip)
        call_by(widget.tabBar(), _speak_name(name))
    return widget


def _let_tab_go(widget: Any) -> None:
    if isinstance(widget, QAbstractItemView):
        widget.setTabKeyNavigation(False)  # Otherwise Tab would cycle through its cells forever.
    elif isinstance(widget, QPlainTextEdit):
        widget.setTabChangesFocus(True)
    elif isinstance(widget, QScrollArea):
        widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Its content has the keyboard focus.


def button(
    name: str, text: str, tip: str, on_click: Callable[[], object], *, primary: bool = False
) -> QPushButton:
    """Return a push button; a `primary` button marks the page's next step."""
    push_button: QPushButton = named(QPushButton(text), name, tip)
    push_button.setProperty("primary", primary)
    push_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    push_button.clicked.connect(lambda _checked=False: on_click())
    return push_button


def tool_button(name: str, text: str, tip: str, on_click: Callable[[], object]) -> QToolButton:
    """Return a small button with a symbol."""
    bare_button = SignButton()
    bare_button.setText(text)
    sign_button: QToolButton = named(bare_button, name, tip)
    sign_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    sign_button.clicked.connect(lambda _checked=False: on_click())
    return sign_button


def label(name: str, text: str = "", tip: str = "") -> QLabel:
    """Return a label that wraps and can be copied."""
    text_label: QLabel = named(WrappedLabel(text), name, tip)
    return text_label


def heading(text: str) -> QLabel:
    """Return the title of a page or section."""
    title = QLabel(text)
    title.setProperty("heading", True)
    return title


def line() -> QFrame:
    """Return a thin line between sections."""
    frame = QFrame()
    frame.setFrameShape(QFrame.Shape.HLine)
    frame.setProperty("rule", True)
    frame.setFixedHeight(1)
    return frame


def row(*widgets: QWidget | int) -> QWidget:
    """Return a row of widgets; an integer is a stretch.

    A field takes its accessible name from the preceding text.
    """
    for before, field in pairwise(widgets):
        if isinstance(before, QLabel) and isinstance(field, _FIELDS):
            call_by(field, before.text())
    holder = QWidget()
    fill_row(holder, *widgets, spacing=_SPACE)
    return holder


def call_by(control: QWidget, text: str) -> None:
    """Set the accessible name of a control to a short text, such as the preceding text."""
    words = _read_words(text)
    if words:
        control.setAccessibleName(words)
        control.setProperty(_CALLED, True)
    if words and isinstance(control, QAbstractSpinBox):
        control.lineEdit().setAccessibleName(words)


def refresh_accessible_text(widget: QWidget) -> None:
    """Update the accessible name and description of a control after its text has changed.

    The name of a button is its text without symbols, unless `call_by` set a name; the text of a
    label is used unchanged.
    """
    widget.setAccessibleDescription(widget.toolTip())
    words = _read_words(widget.text()) if isinstance(widget, QAbstractButton) else ""
    if words and not widget.property(_CALLED):
        widget.setAccessibleName(words)


def column(*widgets: QWidget | int) -> QWidget:
    """Return a column of widgets; an integer is a stretch."""
    holder = QWidget()
    fill_column(holder, *widgets, spacing=_SPACE)
    return holder


def fill_row(
    holder: QWidget,
    *parts: Part,
    margins: Margins = _NO_MARGINS,
    spacing: int | None = None,
) -> None:
    """Arrange widgets side by side in a holder; the arguments are as in `fill_column`."""
    _fill(QHBoxLayout(holder), parts, margins, spacing)


def fill_column(
    holder: QWidget,
    *parts: Part,
    margins: Margins = _NO_MARGINS,
    spacing: int | None = None,
) -> None:
    """Arrange widgets below each other in a holder.

    Parameters
    ----------
    holder
        The widget that gets the layout.
    parts
        Widgets; an integer is a stretch, and a pair is a widget with its stretch.
    margins, spacing
        Pixels around and between the widgets; None for the margins and spacing of the style.
    """
    _fill(QVBoxLayout(holder), parts, margins, spacing)


class Fold(QWidget):
    """Content that can be collapsed below a header line; it is collapsed at first.

    Parameters
    ----------
    name, text, tip
        The objectName, text and tooltip of the header line.
    content
        The widget that the header line shows or hides.
    """

    def __init__(self, name: str, text: str, tip: str, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self.line = tool_button(name, text, tip, self.toggle)
        self.line.setArrowType(Qt.ArrowType.RightArrow)
        self.line.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        fill_column(self, self.line, content, spacing=2)
        content.hide()

    def toggle(self) -> None:
        """Show or hide the content."""
        is_shown = self._content.isHidden()
        self._content.setVisible(is_shown)
        arrow = Qt.ArrowType.DownArrow if is_shown else Qt.ArrowType.RightArrow
        self.line.setArrowType(arrow)


def discard(widget: QWidget) -> None:
    """Delete a control that may currently be emitting a signal.

    The control is deleted in the next event-loop iteration. Until then its signals are blocked,
    because a hidden field loses the keyboard focus and would emit a signal. The control and its
    children can no longer be found by name.
    """
    for child in (widget, *widget.findChildren(QWidget)):
        child.blockSignals(True)
        child.setObjectName("")
    widget.hide()
    widget.deleteLater()


def set_primary(made: QAbstractButton | QComboBox, primary: bool) -> None:
    """Mark a control as the page's next step, or make it an ordinary control."""
    _set_property(made, "primary", primary)


def set_level(made: QLabel, level: str) -> None:
    """Style a text as "hint", "warning" or "error"."""
    _set_property(made, "level", level)


def set_sheet(made: QFrame, is_over: bool) -> None:
    """Draw a border around a frame that covers other controls."""
    _set_property(made, "sheet", is_over)


def swatch(colour: str, size: int = 12) -> QIcon:
    """Return a square icon of a colour."""
    pixmap = QPixmap(size, size)
    pixmap.fill(QColor(colour))
    return QIcon(pixmap)


def chip_icon(colour: str, frame: str, size: int = 12) -> QIcon:
    """Return a framed square icon for a button: coloured while checked, otherwise empty."""
    icon = QIcon()
    for state, inside in ((QIcon.State.On, colour), (QIcon.State.Off, "transparent")):
        pixmap = QPixmap(size, size)
        pixmap.fill(QColor(frame))
        painter = QPainter(pixmap)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
        painter.fillRect(1, 1, size - 2, size - 2, QColor(inside))
        painter.end()
        icon.addPixmap(pixmap, QIcon.Mode.Normal, state)
    return icon


def style_sheet(theme: ThemeColours) -> str:
    """Return the style sheet rules that napari's own style sheet lacks."""
    kind = "dark" if theme.is_dark else "light"
    tick = round(_TICK * max(theme.font_points / _USUAL_POINTS, 1))
    return f"""
        QPushButton[primary="true"] {{
            background-color: {theme.accent}; color: {theme.on_accent};
            font-weight: bold; padding: 5px 12px;
        }}
        QPushButton[primary="true"]:disabled {{ background-color: {theme.quiet}; }}
        QComboBox[primary="true"] {{ border: 2px solid {theme.accent}; font-weight: bold; }}
        QPushButton[onward="true"] {{ border: 2px solid {theme.accent}; font-weight: bold; }}
        QPushButton[section="true"] {{ text-align: left; font-weight: bold; padding: 4px 6px; }}
        QPushButton[section="true"]:checked {{
            background-color: {theme.line}; color: {theme.text};
        }}
        QToolButton::menu-indicator {{ image: none; }}
        QToolButton[chip="true"] {{ padding: 1px 3px; }}
        QToolButton[chip="true"]:!checked {{ color: {QUIET_TEXT_COLOURS[kind]}; }}
        QLineEdit {{ placeholder-text-color: {QUIET_TEXT_COLOURS[kind]}; }}
        QToolButton, QLineEdit, QTableView, QTreeView, QHeaderView {{
            font-size: {theme.font_points}pt;
        }}
        QToolButton[framed="true"] {{
            background-color: {theme.line}; padding: 2px 6px; border-radius: 2px;
        }}
        QToolButton[framed="true"]:checked {{
            background-color: {theme.accent}; color: {theme.on_accent};
        }}
        QToolButton[framed="true"][primary="true"]:!checked {{
            border: 2px solid {theme.accent}; font-weight: bold;
        }}
        QTableView::indicator, QTreeView::indicator, QListView::indicator {{
            width: {tick}px; height: {tick}px; border: 1px solid {QUIET_TEXT_COLOURS[kind]};
        }}
        QTableView::indicator:checked, QTreeView::indicator:checked,
        QListView::indicator:checked {{
            background-color: {theme.accent}; image: url("theme_{kind}:/check.svg");
        }}
        QCheckBox::indicator {{ border: 1px solid {QUIET_TEXT_COLOURS[kind]}; }}
        QAbstractItemView {{ alternate-background-color: {theme.stripe}; }}
        QListView::item {{ padding: {ROW_PADDING}px 0px; }}
        QComboBox QAbstractItemView::item:selected {{
            background-color: {theme.accent}; color: {theme.on_accent};
        }}
        QPushButton:checked {{ background-color: {theme.accent}; color: {theme.on_accent}; }}
        QTabBar::tab {{ min-height: {_TAB}px; }}
        QLabel[heading="true"] {{ font-weight: bold; }}
        QToolBar {{ border: none; padding: 0px; spacing: 0px; }}
        QToolButton[step="true"] {{ padding: 1px 5px; border-radius: 2px; }}
        QToolButton[step="true"]:checked {{
            background-color: {theme.accent}; color: {theme.on_accent};
        }}
        QFrame[rule="true"] {{ background-color: {theme.line}; border: none; }}
        QFrame[sheet="true"] {{ border: 1px solid {theme.line}; }}
        QLabel[level="warning"] {{ color: {WARNING_COLOURS[kind]}; }}
        QLabel[level="error"] {{ color: {ERROR_COLOURS[kind]}; }}
    """


def _read_words(text: str) -> str:
    """Return the words of a text without leading and trailing symbols.

    Examples
    --------
    >>> _read_words("▾ Fold away"), _read_words("View ▾"), _read_words("3-D"), _read_words("…")
    ('Fold away', 'View', '3-D', '')
    """
    words = " ".join(text.replace("&", "").split()).strip(_SIGNS)
    return words if any(letter.isalpha() for letter in words) else ""


def _speak_name(name: str) -> str:
    """Return the words of an objectName without the page's name, such as "choose clinical".

    Examples
    --------
    >>> _speak_name("batch_choose_clinical"), _speak_name("keys")
    ('choose clinical', 'keys')
    """
    return name.partition("_")[2].replace("_", " ") or name


def _name_by_tip(tip: str) -> str:
    """Return the first clause of a tooltip if it is short, as the name of a symbol button.

    Examples
    --------
    >>> _name_by_tip("Next uncertain region  (key G)"), _name_by_tip("x" * 50)
    ('Next uncertain region', '')
    """
    clause = re.split(r"[;:,(\n]", tip, maxsplit=1)[0].strip(" .")
    return clause if len(clause) <= MOST_LETTERS else ""


def _set_property(widget: QWidget, name: str, value: object) -> None:
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def _fill(
    layout: QHBoxLayout | QVBoxLayout, parts: Iterable[Part], margins: Margins, spacing: int | None
) -> None:
    if margins is not None:
        layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if isinstance(part, int):
            layout.addStretch(part)
        elif isinstance(part, tuple):
            layout.addWidget(*part)
        else:
            layout.addWidget(part)
