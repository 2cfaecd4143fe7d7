"""A list of a few lines of text, each broken where it is long, as high as its first ones."""

from typing import Final

from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QListWidget

from napari_mamamia.widgets.controls.controls import named

_MOST_ROWS: Final = 5
_ROW: Final = 26


class LineList(QListWidget):
    """A list whose lines can be hit and are broken where they are long.

    It is as high as its first lines are, and takes its height anew whenever its width changes: how
    often a line is broken is known once the list has been laid out, and nothing says when.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)

    def fit(self) -> None:
        """Take the height of the first lines; whoever changes the lines calls it."""
        # A bar that comes and goes would break the lines elsewhere.
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
        """Break the lines anew where the width is another."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()


def make_line_list(name: str, tip: str) -> LineList:
    """Return a list that names its lines in full, with its name and tooltip."""
    lines: LineList = named(LineList(), name, tip)
    return lines
