"""List of regions in which models were uncertain or disagreed.

A click on a region, or one of the buttons Next and Previous, shows a region in the image.
"""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QListWidget, QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.services.predict.uncertainty import (
    UncertainRegion,
    Uncertainty,
    UncertaintyKind,
)
from napari_mamamia.widgets.controls.controls import label, named, row, tool_button
from napari_mamamia.widgets.controls.fields import combo_box

_LEAST_HEIGHT: Final = 80
_KINDS: Final = {
    UncertaintyKind.ENTROPY: "entropy",
    UncertaintyKind.VARIANCE: tr("variance between models"),
}


class UncertaintyList(QWidget):
    """The list of uncertain regions.

    The signal `chosen` carries the index of a region; region 0 has the largest weight.
    `kind_wanted` carries the `UncertaintyKind` for finding regions.
    """

    chosen = Signal(int)
    kind_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_doubt_places")
        self.title = label("predict_doubt_title", tip=tr("Number of uncertain regions"))
        self.title.setProperty("heading", True)
        self.before = tool_button(
            "predict_doubt_previous",
            "‹",
            tr("Goes to the previous uncertain region (key Shift+G)."),
            self.previous,
        )
        self.after = tool_button(
            "predict_doubt_next", "›", tr("Goes to the next uncertain region (key G)."), self.next
        )
        self.list: QListWidget = named(
            QListWidget(),
            "predict_doubt_list",
            tr(
                "The model's most uncertain regions, with volume and mean uncertainty. Click a "
                "region to go to it."
            ),
        )
        self.kinds = combo_box(
            "predict_doubt_from",
            tr(
                "Measure of uncertainty: the entropy of the mean probability, or the variance of "
                "the models' probabilities."
            ),
        )
        self.kinds.setMinimumContentsLength(8)
        self.kinds.currentIndexChanged.connect(self._choose_kind)
        self.kinds_row = row(QLabel(tr("uncertainty measure")), self.kinds, 1)
        self.list.setAlternatingRowColors(True)
        self.list.setMinimumHeight(_LEAST_HEIGHT)
        self.list.currentRowChanged.connect(self._choose_place)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        first = QHBoxLayout()
        first.addWidget(self.title, stretch=1)
        first.addWidget(self.before)
        first.addWidget(self.after)
        layout.addLayout(first)
        layout.addWidget(self.kinds_row)
        layout.addWidget(self.list)
        self.show_kinds((), None)
        self.show_uncertainty(None)

    @property
    def is_shown(self) -> bool:
        """Whether there are regions to go to."""
        return bool(self.list.count() > 0)

    def show_uncertainty(self, found: Uncertainty | None) -> None:
        """List the uncertain regions of a prediction; None means that there is no map."""
        places: Sequence[UncertainRegion] = found.places if found else ()
        self.list.blockSignals(True)
        self.list.clear()
        for number, place in enumerate(places, start=1):
            amount = f"{place.mean:.2f} {found.unit if found else ''}".strip()
            self.list.addItem(
                tr(
                    "{number}   {volume:.2f} ml   {amount}",
                    number=number,
                    volume=place.volume_mm3 / 1000,
                    amount=amount,
                )
            )
        self.list.setCurrentRow(-1)
        self.list.blockSignals(False)
        if found is not None:
            more = (
                tr(", the largest {n_places} shown", n_places=len(places))
                if found.n_places > len(places)
                else ""
            )
            self.title.setText(
                tr("Uncertain regions: {n_places}{more}", n_places=found.n_places, more=more)
            )
        self.setVisible(found is not None)

    def show_kinds(self, kinds: Sequence[UncertaintyKind], chosen: UncertaintyKind | None) -> None:
        """Show the measures of uncertainty if there are several."""
        self.kinds.blockSignals(True)
        self.kinds.clear()
        for kind in kinds:
            self.kinds.addItem(_KINDS[kind], kind)
        self.kinds.setCurrentIndex(self.kinds.findData(chosen))
        self.kinds.blockSignals(False)
        self.kinds_row.setVisible(len(kinds) > 1)

    def next(self) -> None:
        """Go to the next region; the last region is followed by the first."""
        if self.is_shown:
            self.list.setCurrentRow((self.list.currentRow() + 1) % self.list.count())

    def previous(self) -> None:
        """Go to the previous region; the first region is preceded by the last."""
        if self.is_shown:
            self.list.setCurrentRow((max(self.list.currentRow(), 0) - 1) % self.list.count())

    def _choose_kind(self, _index: int) -> None:
        if self.kinds.currentData() is not None:
            self.kind_wanted.emit(self.kinds.currentData())

    def _choose_place(self, number: int) -> None:
        if number >= 0:
            self.chosen.emit(number)
