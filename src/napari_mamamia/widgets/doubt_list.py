"""Where a model was most in doubt; a click, or the buttons of next and previous, goes there."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QListWidget, QVBoxLayout, QWidget

from napari_mamamia.services.doubt import Doubt, DoubtfulPlace
from napari_mamamia.widgets.controls import heading, named, row, tool_button

__all__ = ["DoubtList"]

_LEAST_HEIGHT: Final = 80


class DoubtList(QWidget):
    """`chosen` carries the number of a place, the heaviest at 0."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_doubt_places")
        self.title = heading("")
        self.before = tool_button(
            "predict_doubt_previous", "‹", "Previous doubtful place  (key Shift+G)", self.previous
        )
        self.after = tool_button(
            "predict_doubt_next", "›", "Next doubtful place  (key G)", self.next
        )
        self.list: QListWidget = named(
            QListWidget(),
            "predict_doubt_list",
            "Where the model was most in doubt: volume and mean entropy; a click goes there",
        )
        self.list.setAlternatingRowColors(True)
        self.list.setMinimumHeight(_LEAST_HEIGHT)
        self.list.currentRowChanged.connect(self._choose)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(row(self.title, 1, self.before, self.after))
        layout.addWidget(self.list)
        self.show_doubt(None)

    @property
    def is_shown(self) -> bool:
        """Whether there are places to step through."""
        return bool(self.list.count() > 0)

    def show_doubt(self, found: Doubt | None) -> None:
        """List the places of a prediction; None while there is no map of doubt."""
        places: Sequence[DoubtfulPlace] = found.places if found else ()
        self.list.blockSignals(True)
        self.list.clear()
        for number, place in enumerate(places, start=1):
            self.list.addItem(
                f"{number}   {place.volume_mm3 / 1000:.2f} ml   {place.mean_bits:.2f} bit"
            )
        self.list.setCurrentRow(-1)
        self.list.blockSignals(False)
        if found is not None:
            more = f", the heaviest {len(places)}" if found.n_places > len(places) else ""
            self.title.setText(f"{found.n_places} doubtful place(s){more}")
        self.setVisible(found is not None)

    def next(self) -> None:
        """Go to the next place, after the last one to the first."""
        if self.is_shown:
            self.list.setCurrentRow((self.list.currentRow() + 1) % self.list.count())

    def previous(self) -> None:
        """Go to the place before, before the first one to the last."""
        if self.is_shown:
            self.list.setCurrentRow((self.list.currentRow() - 1) % self.list.count())

    def _choose(self, number: int) -> None:
        if number >= 0:
            self.chosen.emit(number)
