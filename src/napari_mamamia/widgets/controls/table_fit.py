"""Row heights and column widths of a table, adapted to its font size."""

from collections.abc import Sequence

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QTableView

from napari_mamamia.widgets.controls.targets import LEAST, USUAL_LINE


class TableFit(QObject):
    """An object that fits the rows and columns of a table to its font size.

    Parameters
    ----------
    table
        The table.
    widths
        Widths of the columns at napari's default font size; if empty, the table determines the
        widths.
    """

    def __init__(self, table: QTableView, widths: Sequence[int] = ()) -> None:
        super().__init__(table)
        self._table = table
        self._widths = tuple(widths)
        self._share = 0.0
        table.installEventFilter(self)
        self._fit_rows()

    @property
    def row_height(self) -> int:
        """The current height of a row in pixels, which is large enough to click."""
        return round(LEAST * self._share)

    def set_widths(self, widths: Sequence[int]) -> None:
        """Set new widths in pixels at napari's default font size."""
        self._widths = tuple(widths)
        self._set_columns()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Update the sizes when the table's font changes."""
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.Show):
            self._fit_rows()
        return False

    def _fit_rows(self) -> None:
        share = max(self._table.fontMetrics().height() / USUAL_LINE, 1.0)
        if share != self._share:
            self._share = share
            self._table.verticalHeader().setDefaultSectionSize(self.row_height)
            self._set_columns()

    def _set_columns(self) -> None:
        for section, width in enumerate(self._widths):
            self._table.setColumnWidth(section, round(width * self._share))
