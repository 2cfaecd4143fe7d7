"""The line above the case table: what is shown of it."""

from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QLabel, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from napari_mamamia.services.score.case_facets import DIAMETER, FAILURE, GROUP, SIZE, STATUS, TAG
from napari_mamamia.services.score.case_table import CaseTable, Facet
from napari_mamamia.widgets.controls.controls import named, row, set_level, tool_button

_FEWEST_LETTERS: Final = 3
_LEAST_WIDTH: Final = 78
_ANY: Final = {
    STATUS: "any status",
    SIZE: "any size",
    FAILURE: "any failure",
    TAG: "any tag",
    GROUP: "any group",
}
_TIPS: Final = {
    STATUS: "Show only cases of one status",
    SIZE: "Show only small, moderate or large tumours: by the 20th and 80th percentile of the "
    "reference volume, and by 20 and 50 mm where the clinical table has a diameter",
    FAILURE: "Show only cases with one kind of failure",
    TAG: "Show only cases with one of your own tags",
}
_SIZE_TEXTS: Final = {"in no group": "size unknown"}

Choice = tuple[str, str]
"""Name of a facet and one of its values."""


class FilterBar(QWidget):
    """`changed` says that other rows are wanted: see `chosen` and `words`."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("results_filters")
        self._table: CaseTable | None = None
        self._boxes = {name: self._combo(f"results_{name}", _TIPS[name]) for name in _TIPS}
        self.status, self.size = self._boxes[STATUS], self._boxes[SIZE]
        self.failure, self.tag = self._boxes[FAILURE], self._boxes[TAG]
        self.variable = self._combo("results_variable", "Which groups to choose from")
        self.value = self._combo("results_group", "Show only cases of one group")
        self.variable.currentIndexChanged.connect(lambda _at: self._fill_groups())
        self.search: QLineEdit = named(
            QLineEdit(), "results_search", "Show only cases with these words, in any column of text"
        )
        self.search.setPlaceholderText("search")
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(_LEAST_WIDTH)
        self.search.textChanged.connect(lambda _text: self._say_changed())
        self.clear = tool_button(
            "results_clear", "Clear", "Shows every case again, worst first", self.clear_all
        )
        self.clear.setProperty("framed", True)
        self.count: QLabel = named(QLabel(), "results_count", "Cases in the table now")
        self._lay_out()

    # ---------------------------------------------------------------- for others

    def show_table(self, table: CaseTable | None) -> None:
        """Offer the values that the cases of a table have; choices that fit stay."""
        self._table = table
        for name, box in self._boxes.items():
            self._fill(box, _ANY[name], self._facets_for(name))
        self._fill_variables()
        self._fill_groups(tell=False)

    def clear_all(self) -> None:
        """Choose nothing."""
        for box in (*self._boxes.values(), self.variable):
            box.blockSignals(True)
            box.setCurrentIndex(0)
            box.blockSignals(False)
        self._fill_groups(tell=False)
        self.search.blockSignals(True)
        self.search.clear()
        self.search.blockSignals(False)
        self._say_changed()

    @property
    def chosen(self) -> tuple[Choice, ...]:
        """Every chosen facet with its value."""
        boxes = (*self._boxes.values(), self.value)
        return tuple(box.currentData() for box in boxes if box.currentData() is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that every row shown holds."""
        return tuple(self.search.text().split())

    def show_count(self, shown: int, total: int) -> None:
        """Say how many of the cases are shown."""
        self.count.setText(f"{shown:,} of {total:,} shown")
        set_level(self.count, "hint" if shown == total else "warning")

    # -------------------------------------------------------------------- inner

    def _combo(self, name: str, tip: str) -> QComboBox:
        made: QComboBox = named(QComboBox(), name, tip)
        made.setMinimumContentsLength(_FEWEST_LETTERS)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        made.setSizeAdjustPolicy(policy)
        made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        made.setMinimumWidth(_LEAST_WIDTH)
        if name != "results_variable":
            made.currentIndexChanged.connect(lambda _at: self._say_changed())
        return made

    def _lay_out(self) -> None:
        line = row(
            self.status,
            self.size,
            self.variable,
            self.value,
            self.failure,
            self.tag,
            self.search,
            self.clear,
            self.count,
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(line)

    def _facets_for(self, name: str) -> list[Facet]:
        if self._table is None:
            return []
        names = (SIZE, DIAMETER) if name == SIZE else (name,)
        return [facet for wanted in names if (facet := self._table.facet(wanted))]

    def _fill(self, box: QComboBox, anything: str, facets: list[Facet]) -> None:
        before = box.currentData()
        box.blockSignals(True)
        box.clear()
        box.addItem(anything, None)
        for facet in facets:
            for value, count in zip(facet.values, facet.counts, strict=True):
                text = _SIZE_TEXTS.get(value, value) if box is self.size else value
                box.addItem(f"{text} ({count:,})", (facet.name, value))
        _choose(box, before)
        box.setEnabled(box.count() > 1)
        box.blockSignals(False)
        wide = max((len(box.itemText(k)) for k in range(box.count())), default=0)
        box.view().setMinimumWidth(box.fontMetrics().averageCharWidth() * wide + 40)

    def _fill_variables(self) -> None:
        before = self.variable.currentData()
        facets = self._table.facets if self._table else ()
        self.variable.blockSignals(True)
        self.variable.clear()
        self.variable.addItem("group by …", None)
        for facet in facets:
            if facet.name.startswith(GROUP):
                self.variable.addItem(facet.title, facet.name)
        _choose(self.variable, before)
        self.variable.setEnabled(self.variable.count() > 1)
        self.variable.blockSignals(False)
        wide = max(len(self.variable.itemText(k)) for k in range(self.variable.count()))
        letters = self.variable.fontMetrics().averageCharWidth()
        self.variable.view().setMinimumWidth(letters * wide + 40)

    def _fill_groups(self, *, tell: bool = True) -> None:
        before = self.value.currentData()
        name = self.variable.currentData()
        self._fill(self.value, _ANY[GROUP], self._facets_for(name) if name else [])
        self.value.setVisible(name is not None)
        if tell and before is not None:
            self._say_changed()

    def _say_changed(self) -> None:
        self.clear.setEnabled(bool(self.chosen or self.words))
        self.changed.emit()


def _choose(box: QComboBox, data: object) -> None:
    """Choose the item with `data`, the first where there is none."""
    places = [at for at in range(box.count()) if data is not None and box.itemData(at) == data]
    box.setCurrentIndex(places[0] if places else 0)
