"""A scroll area for a page, so that every control can be reached with any screen and font size."""

from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QSize, Qt
from qtpy.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QFrame,
    QScrollArea,
    QScrollBar,
    QWidget,
)

from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.controls.controls import named

_BESIDE = 4
_LEAST_LINES = 2.5
_TURNED_BY_WHEEL = (QAbstractSpinBox, QComboBox, QAbstractSlider)
ALL: Final = 1000
"""Stretch factor of the part of a page that takes all remaining height."""


class PageArea(QScrollArea):
    """A scroll area that gives its page the full width it needs.

    The mouse wheel scrolls the page. It changes a number or a choice only after a click on that
    control.

    Parameters
    ----------
    page
        The page to show.
    name
        The area's objectName.
    is_part
        Whether the area is the middle of a page and sets the width of the whole page.
    is_fitted
        Whether the area is never higher than its page.
    """

    def __init__(
        self, page: QWidget, name: str, *, is_part: bool = False, is_fitted: bool = False
    ) -> None:
        super().__init__()
        self._is_part, self._is_fitted = is_part, is_fitted
        named(self, name, "")
        self.setWidget(page)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        if is_fitted:
            self.verticalScrollBar().rangeChanged.connect(lambda *_range: self._fit_height())

    @property
    def whole_width(self) -> int:
        """The width in pixels of the whole page, including hidden controls and a scroll bar.

        A page without a case hides its content, but the width of the dock must fit this content.
        """
        page = self.widget()
        parts = page.findChildren(QWidget)
        for widget in parts:
            # Before it is shown, a part has neither the font nor the padding of the style sheet.
            widget.ensurePolished()
        inside = [widget.minimumSizeHint().width() for widget in parts if not widget.isWindow()]
        return int(max(page.minimumSizeHint().width(), *inside, 0)) + self._bar_width

    @property
    def _bar_width(self) -> int:
        return int(self.verticalScrollBar().sizeHint().width()) + _BESIDE

    def resizeEvent(self, event: Any) -> None:
        """Update the height, because wrapped lines need more height on a narrower page."""
        super().resizeEvent(event)
        if self._is_fitted:
            self._fit_height()

    def _fit_height(self) -> None:
        page = self.widget()
        high = page.heightForWidth(self.viewport().width())
        edges = self.height() - self.viewport().height()  # This is the value of the style sheet.
        self.setMaximumHeight(max(high, page.minimumSizeHint().height()) + edges)
        call_later(self, self._lay_out_again)

    def _lay_out_again(self) -> None:
        """Lay the page out for its current size.

        Qt can keep the layout of the previous size if the page is resized while it is laid out.
        """
        page = self.widget()
        layout = None if page is None else page.layout()
        if layout is not None and layout.geometry() != page.rect():
            layout.invalidate()
            layout.activate()

    def sizeHint(self) -> QSize:
        """Return the width of the page plus a scroll bar; the layout sets the height."""
        page = self.widget().minimumSizeHint()
        height = self.minimumSizeHint().height() if self._is_part else page.height()
        return QSize(page.width() + self._bar_width, height)

    def minimumSizeHint(self) -> QSize:
        """Return the height of a few lines; a nested area keeps its full width."""
        line = self.fontMetrics().height()
        wide = self.widget().minimumSizeHint().width() + self._bar_width
        return QSize(wide if self._is_part else 8 * line, int(_LEAST_LINES * line))

    def keyPressEvent(self, event: Any) -> None:
        """Pass keys to the window, because PgDn is the next hanging step and Tab would scroll."""
        event.ignore()

    def showEvent(self, event: Any) -> None:
        """Watch the current controls, because a page adds and removes rows."""
        super().showEvent(event)
        for kind in _TURNED_BY_WHEEL:
            for control in self.widget().findChildren(kind):
                if not isinstance(
                    control, QScrollBar
                ):  # Scroll bars of a list, or of an area in this page.
                    control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the wheel scroll the page even if the pointer is over a control."""
        # A scroll area also watches its scroll bars, through which the wheel scrolls it.
        is_turned = isinstance(watched, _TURNED_BY_WHEEL) and not isinstance(watched, QScrollBar)
        if event.type() == QEvent.Type.Wheel and is_turned and not watched.hasFocus():
            event.ignore()
            return True
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return bool(super().eventFilter(watched, event))
