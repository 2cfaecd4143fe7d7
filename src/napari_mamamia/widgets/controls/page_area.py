"""A scroll area for a page: on any screen and with any font, nothing is cut or out of reach."""

from typing import Any

from qtpy.QtCore import QEvent, QObject, QSize, Qt
from qtpy.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QFrame,
    QScrollArea,
    QWidget,
)

from napari_mamamia.widgets.controls.controls import named

_BESIDE = 4
_LEAST_LINES = 2.5
_TURNED_BY_WHEEL = (QAbstractSpinBox, QComboBox, QAbstractSlider)


class PageArea(QScrollArea):
    """Gives its page the room it needs; the rest is reached by scrolling.

    The wheel scrolls the page, and changes a number or a choice only if it was clicked before.

    Parameters
    ----------
    page
        The page to show.
    name
        The area's objectName.
    is_part
        Whether this is the middle of a page, which then sets the width of the whole page.
    is_fitted
        Whether it is never higher than its page, however much room there is.
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
        """Width in pixels that shows the whole page, hidden parts too, and a scroll bar.

        A page without a case hides its content; the dock's width must fit what it will show.
        """
        page = self.widget()
        parts = page.findChildren(QWidget)
        for widget in parts:
            # Before it is shown a part has neither font nor padding of the style sheet.
            widget.ensurePolished()
        inside = [widget.minimumSizeHint().width() for widget in parts if not widget.isWindow()]
        return int(max(page.minimumSizeHint().width(), *inside, 0)) + self._bar_width

    @property
    def _bar_width(self) -> int:
        return int(self.verticalScrollBar().sizeHint().width()) + _BESIDE

    def resizeEvent(self, event: Any) -> None:
        """Update the height: wrapped lines need more of it on a narrower page."""
        super().resizeEvent(event)
        if self._is_fitted:
            self._fit_height()

    def _fit_height(self) -> None:
        page = self.widget()
        high = page.heightForWidth(self.viewport().width())
        edges = self.height() - self.viewport().height()  # the style sheet's
        self.setMaximumHeight(max(high, page.minimumSizeHint().height()) + edges)

    def sizeHint(self) -> QSize:
        """Return the width of the page and a scroll bar; the layout sets the height of a part."""
        page = self.widget().minimumSizeHint()
        height = self.minimumSizeHint().height() if self._is_part else page.height()
        return QSize(page.width() + self._bar_width, height)

    def minimumSizeHint(self) -> QSize:
        """Return room for a few lines; a part has its full width, the page around it scrolls."""
        line = self.fontMetrics().height()
        wide = self.widget().minimumSizeHint().width() + self._bar_width
        return QSize(wide if self._is_part else 8 * line, int(_LEAST_LINES * line))

    def keyPressEvent(self, event: Any) -> None:
        """Leave keys to the window: PgDn is the next hanging step, and Tab would scroll here."""
        event.ignore()

    def showEvent(self, event: Any) -> None:
        """Watch the current controls, because rows of a page are added and removed."""
        super().showEvent(event)
        for kind in _TURNED_BY_WHEEL:
            for control in self.widget().findChildren(kind):
                control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the wheel scroll the page while the pointer passes over a control."""
        is_wheel = event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget)
        if is_wheel and not watched.hasFocus():
            event.ignore()
            return True
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return bool(super().eventFilter(watched, event))
