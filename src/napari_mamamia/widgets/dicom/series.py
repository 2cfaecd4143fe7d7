"""The table of the series of a DICOM study: image, contents, phases and problems."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtGui import QColor, QPixmap
from qtpy.QtWidgets import QHeaderView, QTableView

from napari_mamamia.core.texts import tr
from napari_mamamia.io.exam.selectors import Group
from napari_mamamia.io.exam.table import SeriesRow
from napari_mamamia.services.dicom.preview import SlicePicture
from napari_mamamia.widgets.controls.colours import TINTS
from napari_mamamia.widgets.controls.grey_pixmap import no_picture, picture_tip, square_pixmap
from napari_mamamia.widgets.controls.titled_rows import TitledRows
from napari_mamamia.widgets.dicom.text import kind_text, matrix_text, series_text

_TITLES: Final = (
    (
        "series",
        tr(
            "Number, description, matrix (slices x rows x columns), spacing in mm and middle "
            "slice of each series; ticked series are used."
        ),
    ),
    (
        tr("Contents"),
        tr(
            "Phases and times of the series or the reason for leaving it out, and the number of "
            "images."
        ),
    ),
)
_WIDTHS: Final = (0.6, 0.4)
_SERIES, _KIND = range(2)
_MOST_HEIGHT: Final = 320
_LEAST_HEIGHT: Final = 60
_PICTURE_LINES: Final = 3
"""Height of an image, in lines of text."""


class SeriesModel(TitledRows):
    """A table model of the series; `toggled` carries a part's selectors and whether to use it."""

    titles = _TITLES
    toggled = Signal(object, bool)

    def __init__(self) -> None:
        super().__init__()
        self._times_s: tuple[float, ...] | None = None
        self._n_before: int | None = None
        self._ticked: frozenset[Group] = frozenset()
        self._side = 42
        self._found: dict[int, SlicePicture | str] = {}
        self._drawn: dict[int, QPixmap] = {}

    def show_rows(
        self,
        rows: Sequence[SeriesRow],
        times_s: tuple[float, ...] | None,
        ticked: frozenset[Group],
        n_before: int | None = None,
    ) -> None:
        """Show the series of a study; `ticked` holds the selectors of the series in use."""
        self.beginResetModel()
        self.rows, self._times_s, self._ticked = tuple(rows), times_s, ticked
        self._n_before = n_before
        self._found.clear()
        self._drawn.clear()
        self.endResetModel()

    def show_picture(self, at: int, found: SlicePicture | str) -> None:
        """Show the middle slice of a row, or a placeholder with the reason as tooltip."""
        self._found[at] = found
        self._drawn.pop(at, None)
        index = self.index(at, _SERIES)
        self.dataChanged.emit(index, index, [Qt.ItemDataRole.DecorationRole])

    def set_side(self, side: int) -> None:
        """Set the size of the images in pixels."""
        if side != self._side:
            self._side = side
            self._drawn.clear()

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, tooltip, colour or check state."""
        series: SeriesRow = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._describe_series(series, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return series.fate if index.column() == _KIND else self._make_tip(index.row())
        if role == Qt.ItemDataRole.DecorationRole and index.column() == _SERIES:
            return self._draw_picture(index.row())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
        if role == Qt.ItemDataRole.BackgroundRole and series.problem:
            return QColor(TINTS["problem"])
        if role == Qt.ItemDataRole.CheckStateRole and index.column() == _SERIES:
            return self._find_check_state(series)
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Return the flags of a cell; only series that may be used have a check box."""
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.column() == _SERIES and self._may_be_chosen(self.rows[index.row()]):
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        return flags

    def setData(self, index: QModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Emit `toggled` when the user changes a check box; updated rows follow."""
        selectors = self.rows[index.row()].selectors
        if role != Qt.ItemDataRole.CheckStateRole or not selectors:
            return False
        self.toggled.emit(selectors, Qt.CheckState(value) == Qt.CheckState.Checked)
        return True

    def _describe_series(self, series: SeriesRow, column: int) -> str:
        if column == _KIND:
            return kind_text(series, self._times_s, self._n_before)
        return "\n".join(part for part in (series_text(series), matrix_text(series)) if part)

    def _draw_picture(self, at: int) -> QPixmap:
        if at not in self._drawn:
            picture = self._found.get(at)
            self._drawn[at] = (
                no_picture(self._side)
                if isinstance(picture, str)
                else square_pixmap(picture, self._side)
            )
        return self._drawn[at]

    def _make_tip(self, at: int) -> str:
        series: SeriesRow = self.rows[at]
        text, picture = series.sequence or series.kind, self._found.get(at)
        if isinstance(picture, str):
            return tr("{words}\nNo picture: {picture}", words=text, picture=picture)
        return text if picture is None else picture_tip(picture, text)

    def _may_be_chosen(self, series: SeriesRow) -> bool:
        is_twin = not series.phases and any(
            row.phases and row.selectors == series.selectors for row in self.rows
        )
        return bool(series.selectors) and not is_twin

    def _find_check_state(self, series: SeriesRow) -> Qt.CheckState | None:
        if not self._may_be_chosen(series):
            return None
        on = series.selectors in self._ticked
        return Qt.CheckState.Checked if on else Qt.CheckState.Unchecked


class SeriesTable(QTableView):
    """The table of series with wrapped text, as high as its rows or a third of the window."""

    def __init__(self) -> None:
        super().__init__()
        self.setSelectionMode(QTableView.SelectionMode.NoSelection)
        self.setEditTriggers(QTableView.EditTrigger.NoEditTriggers)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)

    def fit(self) -> None:
        """Distribute the width to the columns, and fit the height of each row to its text."""
        if self.model() is None or self.model().rowCount() == 0:
            return
        self.model().set_side(_PICTURE_LINES * self.fontMetrics().height())
        width = self.viewport().width()
        for column, share in enumerate(_WIDTHS):
            self.setColumnWidth(column, int(width * share))
        self.resizeRowsToContents()
        rows = sum(self.rowHeight(index) for index in range(self.model().rowCount()))
        needed = rows + self.horizontalHeader().height() + 2 * self.frameWidth()
        self.setFixedHeight(max(_LEAST_HEIGHT, min(needed, _MOST_HEIGHT)))

    def resizeEvent(self, event: Any) -> None:
        """Wrap the text again."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()
