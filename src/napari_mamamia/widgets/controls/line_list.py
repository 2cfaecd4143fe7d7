"""A list with a few lines of wrapped text, which is as high as its first lines."""

from typing import Final

from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QListWidget

from napari_mamamia.widgets.controls.controls import named

_MOST_ROWS: Final = 5
_ROW: Final = 26


class LineList(QListWidget):
    """A list of clickable lines that wrap if they are long.

    The list is as high as its first lines, and updates its height whenever its width changes. The
    number of line breaks is known only after layout, and no signal reports it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)

    def fit(self) -> None:
        """Fit the height to the first lines; call this method after the lines change."""
        # A scroll bar that appears and disappears would change the line breaks.
        bar = Qt.ScrollBarPolicy
        has_bar = self.count() > _MOST_ROWS
        self.setVerticalScrollBarPolicy(
            bar.ScrollBarAlwaysOn if has_bar else bar.ScrollBarAlwaysOff
        )
        self.setHorizontalScrollBarPolicy(bar.ScrollBarAlwaysOff)
        self.doItemsLayout()
        first = range(min(self.count(), _MOST_ROWS))
        height = sum(self.visualItemRect(self.item(index)).height() for index in first)
        self.setFixedHeight(max(height, _ROW) + 6)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap the lines again if the width has changed."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()


def make_line_list(name: str, tip: str) -> LineList:
    """Return a list with a name and a tooltip that shows its lines in full."""
    lines: LineList = named(LineList(), name, tip)
    return lines
