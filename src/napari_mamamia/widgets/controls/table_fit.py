"""Rows and columns of a table in step with the size of its text."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QTableView

_USUAL_LINE: Final = 14
"""Height in pixels of a line in napari's usual text, for which the sizes below are meant."""


class TableFit(QObject):
    """Sets the sizes of a table's rows and columns, and sets them anew when its text grows.

    Parameters
    ----------
    table
        The table.
    row
        Height of a row in pixels, with napari's usual text.
    widths
        Widths of the columns, likewise; none leaves them to the table.
    """

    def __init__(self, table: QTableView, row: int, widths: Sequence[int] = ()) -> None:
        super().__init__(table)
        self._table = table
        self._row = row
        self._widths = tuple(widths)
        self._share = 0.0
        table.installEventFilter(self)
        self._fit_rows()

    @property
    def row_height(self) -> int:
        """The height of a row now, in pixels."""
        return round(self._row * self._share)

    def set_widths(self, widths: Sequence[int]) -> None:
        """Set other widths, in pixels with napari's usual text."""
        self._widths = tuple(widths)
        self._set_columns()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Follow the table's font."""
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.Show):
            self._fit_rows()
        return False

    def _fit_rows(self) -> None:
        share = max(self._table.fontMetrics().height() / _USUAL_LINE, 1.0)
        if share != self._share:
            self._share = share
            self._table.verticalHeader().setDefaultSectionSize(self.row_height)
            self._set_columns()

    def _set_columns(self) -> None:
        for section, width in enumerate(self._widths):
            self._table.setColumnWidth(section, round(width * self._share))
