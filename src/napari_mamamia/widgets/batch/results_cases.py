"""The Case table tab: filters, cases and row actions."""

import re
from typing import Final

from qtpy.QtCore import QObject, QPoint, Qt, QTimer, Signal
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.score.case_table import (
    DIAMETER,
    FAILURE,
    GROUP,
    SIZE,
    STATUS,
    TAG,
    WORST_FIRST,
    CaseQuery,
    CaseTable,
    Facet,
    Selection,
    select_cases,
)
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.batch.results_model import COLUMN_WIDTHS, LEGEND, ResultsModel
from napari_mamamia.widgets.cases.page import CaseTable as CaseTableView
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR, TINTS
from napari_mamamia.widgets.controls.controls import label, named, row, set_level, tool_button
from napari_mamamia.widgets.controls.short_texts import DottedChoice, ShortLabel
from napari_mamamia.widgets.score.tags_line import tags_menu

_FEWEST_LETTERS: Final = 3
_LEAST_WIDTH: Final = 78
_BESIDE_WORDS: Final = 42
"""Width of a combo box in pixels in addition to its text: borders, arrow and spacing."""
_ANY: Final = {
    STATUS: tr("any status"),
    SIZE: tr("any size"),
    FAILURE: tr("any failure"),
    TAG: tr("any tag"),
    GROUP: tr("any group"),
}
_TIPS: Final = {
    STATUS: tr("Shows only cases with one status."),
    SIZE: tr(
        "Shows only small, moderate or large tumours, by the 20th and 80th percentile of the "
        "reference volume, or by 20 and 50 mm if the clinical table has a diameter."
    ),
    FAILURE: tr("Shows only cases with one kind of failure."),
    TAG: tr("Shows only cases with one tag."),
}
_SIZE_TEXTS: Final = {"in no group": tr("size unknown")}

Choice = tuple[str, str]
"""Name of a facet and one of its values."""


class FilterBar(QWidget):
    """The filters; `changed` is emitted when the query in `chosen` and `words` changes."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("results_filters")
        self._table: CaseTable | None = None
        self._boxes = {name: self._make_combo(f"results_{name}", _TIPS[name]) for name in _TIPS}
        self.status, self.size = self._boxes[STATUS], self._boxes[SIZE]
        self.failure, self.tag = self._boxes[FAILURE], self._boxes[TAG]
        self.variable = self._make_combo("results_variable", tr("Group variable to filter by."))
        self.value = self._make_combo("results_group", tr("Shows only cases of one group."))
        self.variable.currentIndexChanged.connect(lambda _at: self._fill_groups())
        words = tr("Shows only cases with these words in any text column.")
        self.search: QLineEdit = named(QLineEdit(), "results_search", words)
        self.search.setPlaceholderText(tr("search"))
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(_LEAST_WIDTH)
        self.search.textChanged.connect(lambda _text: self._say_changed())
        self.clear = tool_button(
            "results_clear",
            tr("Clear"),
            tr("Shows all cases again, with the worst first."),
            self.clear_all,
        )
        self.clear.setProperty("framed", True)
        self.count: QLabel = named(QLabel(), "results_count", tr("Number of cases in the table."))
        self._lay_out()

    # ---------------------------------------------------------------- for others

    def show_table(self, table: CaseTable | None) -> None:
        """Offer the facet values of a table's cases; choices that still exist are kept."""
        self._table = table
        for name, box in self._boxes.items():
            self._fill_box(box, _ANY[name], self._facets_for(name))
        self._fill_variables()
        self._fill_groups(tell=False)

    def clear_all(self) -> None:
        """Reset all filters."""
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
        """All chosen facets and their values."""
        boxes = (*self._boxes.values(), self.value)
        return tuple(box.currentData() for box in boxes if box.currentData() is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that a row must contain."""
        return tuple(self.search.text().split())

    def show_count(self, shown: int, total: int) -> None:
        """Show the number of listed cases and of all cases."""
        self.count.setText(tr("{shown:,} of {total:,} shown", shown=shown, total=total))
        set_level(self.count, "hint" if shown == total else "warning")

    # -------------------------------------------------------------------- inner

    def _make_combo(self, name: str, tip: str) -> QComboBox:
        combo: QComboBox = named(DottedChoice(), name, tip)
        combo.setMinimumContentsLength(_FEWEST_LETTERS)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        combo.setSizeAdjustPolicy(policy)
        combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        combo.setMinimumWidth(_LEAST_WIDTH)
        if name != "results_variable":
            combo.currentIndexChanged.connect(lambda _at: self._say_changed())
        return combo

    def _lay_out(self) -> None:
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(4)
        self._fit_lines()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the filters in one line, or in two lines if one line is too narrow."""
        super().resizeEvent(event)
        self._fit_lines()

    def _fit_lines(self) -> None:
        boxes = (self.status, self.size, self.variable, self.value, self.failure, self.tag)
        has_groups = self.variable.currentData() is not None
        cells = [cell for cell in (*boxes, self.clear) if cell is not self.value or has_groups]
        words = [box.itemText(0) for box in boxes]
        widest = max(map(self.fontMetrics().horizontalAdvance, words))
        at_most = max(1, (self.width() + self._grid.spacing()) // (widest + _BESIDE_WORDS))
        n_lines = 1 if at_most >= len(cells) else 2
        n_columns = -(-len(cells) // n_lines)
        for index, cell in enumerate(cells):
            self._grid.addWidget(cell, index // n_columns, index % n_columns)
        for at in range(len(boxes) + 1):
            self._grid.setColumnStretch(at, at < n_columns)

    def _facets_for(self, name: str) -> list[Facet]:
        if self._table is None:
            return []
        names = (SIZE, DIAMETER) if name == SIZE else (name,)
        return [facet for facet_name in names if (facet := self._table.facet(facet_name))]

    def _fill_box(self, box: QComboBox, anything: str, facets: list[Facet]) -> None:
        before = box.currentData()
        box.blockSignals(True)
        box.clear()
        box.addItem(anything, None)
        for facet in facets:
            for value, count in zip(facet.values, facet.counts, strict=True):
                text = _SIZE_TEXTS.get(value, value) if box is self.size else value
                box.addItem(f"{text} ({count:,})", (facet.name, value))
        _choose_item(box, before)
        box.setEnabled(box.count() > 1)
        box.blockSignals(False)
        wide = max(map(len, _list_items(box)))
        box.view().setMinimumWidth(box.fontMetrics().averageCharWidth() * wide + 40)

    def _fill_variables(self) -> None:
        before = self.variable.currentData()
        facets = self._table.facets if self._table else ()
        self.variable.blockSignals(True)
        self.variable.clear()
        self.variable.addItem(tr("group by …"), None)
        for facet in facets:
            if facet.name.startswith(GROUP):
                self.variable.addItem(facet.title, facet.name)
        _choose_item(self.variable, before)
        self.variable.setEnabled(self.variable.count() > 1)
        self.variable.blockSignals(False)
        wide = max(map(len, _list_items(self.variable)))
        letters = self.variable.fontMetrics().averageCharWidth()
        self.variable.view().setMinimumWidth(letters * wide + 40)

    def _fill_groups(self, *, tell: bool = True) -> None:
        before = self.value.currentData()
        name = self.variable.currentData()
        self._fill_box(self.value, _ANY[GROUP], self._facets_for(name) if name else [])
        self._fit_lines()
        self.value.setVisible(name is not None)
        if tell and before is not None:
            self._say_changed()

    def _say_changed(self) -> None:
        self.clear.setEnabled(bool(self.chosen or self.words))
        self.changed.emit()


def _list_items(box: QComboBox) -> list[str]:
    return [box.itemText(index) for index in range(box.count())]


def _choose_item(box: QComboBox, data: object) -> None:
    places = [
        index for index in range(box.count()) if data is not None and box.itemData(index) == data
    ]
    box.setCurrentIndex(places[0] if places else 0)


# Selection and order of the rows of the case table, computed immediately or in a thread.

_AT_ONCE: Final = 5000
"""Maximum number of rows that are filtered and sorted in the GUI thread, in a few ms."""
_WAIT_MS: Final = 80
"""Delay in ms before a large table is searched, to wait for the next letter."""
_LANE: Final = "results_order"


class CaseOrder(QObject):
    """A sorter that runs queries; for a large table only the newest query is run.

    The signal `ordered` carries the table and its `Selection`.
    """

    ordered = Signal(object, object)

    def __init__(self, jobs: JobRunner) -> None:
        super().__init__()
        self._jobs = jobs
        self._table: CaseTable | None = None
        self._query = CaseQuery()
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_WAIT_MS)
        self._wait.timeout.connect(self._start_sorting)

    def ask(self, table: CaseTable | None, query: CaseQuery) -> None:
        """Compute the selection of a table for a query."""
        self._table, self._query = table, query
        self._jobs.cancel(_LANE)
        self._wait.stop()
        if table is None:
            return
        if len(table.rows) <= _AT_ONCE:
            self.ordered.emit(table, select_cases(table, query))
        else:
            self._wait.start()

    def _start_sorting(self) -> None:
        table, query = self._table, self._query
        if table is None:
            return

        self._jobs.start(
            _LANE,
            tr("Sorting the cases"),
            lambda: select_cases(table, query),
            lambda selection: self.ordered.emit(table, selection),
            shown=False,
        )


_RUN_TIP: Final = tr("The run in the table.")
_NOTHING: Final = tr("Nothing has been scored yet: the Batch page scores folders of masks.")


class CasesTab(QWidget):
    """The tab; `case_chosen` carries a case id, `tag_wanted` a case id, a tag and its state.

    `reordered` is emitted when the rows or their order change; `model_chosen` carries the index of
    a model.
    """

    case_chosen = Signal(str)
    tag_wanted = Signal(str, str, bool)
    reordered = Signal()
    model_chosen = Signal(int)

    def __init__(self, jobs: JobRunner) -> None:
        super().__init__()
        self._table: CaseTable | None = None
        self._sort, self._upwards = WORST_FIRST, True
        self._current = ""
        self._is_new = self._is_resorted = False
        self.rows = ResultsModel()
        self.order = CaseOrder(jobs)
        self.order.setParent(self)
        self.order.ordered.connect(self._show_order)
        self.rows.sort_wanted.connect(self._sort_by)
        self.filters = FilterBar()
        self.filters.changed.connect(self._ask_order)
        self._make_table()
        self._lay_out()
        self.show_table(None, _NOTHING)

    # ---------------------------------------------------------------- for others

    def show_table(self, table: CaseTable | None, title: str) -> None:
        """Show all cases of another run, with the worst first."""
        self._table, self._is_new = table, True
        self.summary.set_texts(title, re.split(" · |: ", title)[0])
        self.summary.setToolTip(f"{_RUN_TIP}: {title}")
        self.filters.show_table(table)
        self.filters.setEnabled(table is not None)
        self._sort, self._upwards = WORST_FIRST, True
        self.table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.rows.show_rows(None, None)
        self.filters.clear_all()

    def update_table(self, table: CaseTable) -> None:
        """Update the properties of the same cases, such as their tags."""
        self._table = table
        self.filters.show_table(table)
        self._ask_order()

    def show_models(self, names: list[str]) -> None:
        """Offer the models of a run for choice if there are several."""
        self.models.blockSignals(True)
        self.models.clear()
        self.models.addItems(names)
        self.models.blockSignals(False)
        self.models.setVisible(len(names) > 1)

    def set_current(self, case_id: str) -> None:
        """Highlight the open case, and scroll to its row if the case changed."""
        is_new, self._current = case_id != self._current, case_id
        self._mark_current()
        row = self._place_of_current()
        if is_new and row is not None:
            self.table.scrollTo(self.rows.index(row, 0))

    def tags_menu_at(self, place: int) -> object:
        """Return the context menu with the tags of the case in a row."""
        case_id = self.rows.case_id(place)
        return tags_menu(
            self,
            case_id,
            self.rows.tags_at(place),
            lambda tag, on: self.tag_wanted.emit(case_id, tag, on),
        )

    # -------------------------------------------------------------------- inner

    def _place_of_current(self) -> int | None:
        return self.rows.place_of(case_key(self._current)) if self._current else None

    def _mark_current(self) -> None:
        row = self._place_of_current()
        if row is None:
            self.table.clearSelection()
            return
        self.table.setAutoScroll(False)
        self.table.selectRow(row)
        self.table.setAutoScroll(True)

    def _make_table(self) -> None:
        self.table: CaseTableView = named(
            CaseTableView(),
            "results_table",
            tr(
                "Double-click a case or press Enter to open the case with its errors in colour. "
                "Click a title to sort. Right-click to set tags."
            ),
        )
        self.table.setModel(self.rows)
        self.table.setAlternatingRowColors(False)
        self.table.setSortingEnabled(True)
        self.table.fit.set_widths(COLUMN_WIDTHS)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.table.horizontalHeader().setMinimumSectionSize(40)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.opened.connect(lambda at: self.case_chosen.emit(self.rows.case_id(at)))

    def _lay_out(self) -> None:
        self.summary: ShortLabel = named(ShortLabel(), "results_summary", _RUN_TIP)
        self.summary.setProperty("heading", True)
        self.models: QComboBox = named(
            QComboBox(), "results_model", tr("Model whose cases the table shows.")
        )
        self.models.currentIndexChanged.connect(lambda at: self.model_chosen.emit(at))
        self.models.hide()
        self.legend = label("results_legend", _legend_text(), tr("Meaning of the cell colours."))
        # This control is next to the title because the filters below need the full width.
        title = row(self.summary, self.models, self.filters.search, self.filters.count)
        title.layout().setStretch(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(title)
        layout.addWidget(self.filters)
        layout.addWidget(self.table)
        layout.addWidget(self.legend)

    def _sort_by(self, key: str, upwards: bool) -> None:
        self._sort, self._upwards = key, upwards
        self._is_resorted = True
        self._ask_order()

    def _ask_order(self) -> None:
        query = CaseQuery(self.filters.chosen, self.filters.words, self._sort, self._upwards)
        self.order.ask(self._table, query)

    def _show_order(self, table: CaseTable, shown: Selection) -> None:
        if self._is_new:
            self.rows.show_rows(table, shown)
        else:
            self.rows.show_order(table, shown)
        self.filters.show_count(len(shown), len(table.rows))
        self._mark_current()
        if self._is_new or self._is_resorted:
            self.table.scrollToTop()
        self._is_new = self._is_resorted = False
        self.reordered.emit()

    def _open_menu(self, where: QPoint) -> None:
        index = self.table.indexAt(where)
        if index.isValid():
            menu = self.tags_menu_at(index.row())
            menu.aboutToHide.connect(menu.deleteLater)  # type: ignore[attr-defined]
            menu.popup(self.table.viewport().mapToGlobal(where))  # type: ignore[attr-defined]


def _legend_text() -> str:
    parts = [f'<span style="color:#{TINTS[kind][-6:]}">■</span> {what}' for kind, what in LEGEND]
    return " &nbsp; ".join(
        [
            *parts,
            tr('<span style="color:{quiet_colour}">–</span> unknown', quiet_colour=QUIET_COLOUR),
        ]
    )
