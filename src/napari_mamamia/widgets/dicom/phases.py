"""The phases of a study as pictures with a tick each: the user confirms which are kept."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QCheckBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from napari_mamamia.services.dicom.preview import SlicePicture
from napari_mamamia.widgets.controls.controls import discard, named
from napari_mamamia.widgets.controls.grey_pixmap import slice_pixmap

__all__ = ["PhaseStrip"]

_SIDE: Final = 76
_CELL: Final = 84


class PhaseStrip(QWidget):
    """One cell for each phase; `toggled` carries its number and whether it is kept."""

    toggled = Signal(int, bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("import_phases")
        self.boxes: list[QCheckBox] = []
        self._pictures: list[QLabel] = []
        self._cells: list[QWidget] = []
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)

    def show_phases(self, texts: Sequence[str], kept: Sequence[int]) -> None:
        """Show phases by their texts; pictures come later."""
        for cell in self._cells:
            discard(cell)
        self.boxes, self._pictures, self._cells = [], [], []
        for index, text in enumerate(texts):
            self._cells.append(self._make_cell(index, text, index in kept))
        self._lay_out(again=True)

    def show_pictures(self, pictures: Sequence[SlicePicture]) -> None:
        """Show the picture of each phase."""
        for place, picture in zip(self._pictures, pictures, strict=False):
            place.setPixmap(slice_pixmap(picture, _SIDE))

    def _make_cell(self, index: int, text: str, is_kept: bool) -> QWidget:
        picture: QLabel = named(
            QLabel(), f"import_picture_{index}", f"Middle slice of phase {index}"
        )
        picture.setFixedSize(_SIDE, _SIDE)
        picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box: QCheckBox = named(
            QCheckBox(text), f"import_phase_{index}", f"Phase {index} becomes part of the case"
        )
        box.setChecked(is_kept)
        box.toggled.connect(lambda on: self.toggled.emit(index, on))
        cell = QWidget(self)
        layout = QVBoxLayout(cell)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(picture)
        layout.addWidget(box)
        self.boxes.append(box)
        self._pictures.append(picture)
        return cell

    def _lay_out(self, *, again: bool = False) -> None:
        widest = max((cell.sizeHint().width() for cell in self._cells), default=0)
        columns = max(1, self.width() // max(_CELL, widest))
        if columns == self._columns and not again:
            return
        self._columns = columns
        for index, cell in enumerate(self._cells):
            self._grid.addWidget(cell, index // columns, index % columns)
            cell.show()
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, int(column == columns))
        self._grid.setColumnStretch(columns, 1)

    def resizeEvent(self, event: Any) -> None:
        """Put as many into a line as there is room for."""
        super().resizeEvent(event)
        if self._cells:
            self._lay_out()
