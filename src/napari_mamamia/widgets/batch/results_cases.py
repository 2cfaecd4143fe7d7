"""Tab Case table: the filters, the cases, and what can be done with a row."""

from typing import Final

from qtpy.QtCore import QObject, QPoint, Qt, QTimer, Signal
from qtpy.QtWidgets import QComboBox, QHeaderView, QLabel, QSizePolicy, QVBoxLayout, QWidget

from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.score.case_table import (
    WORST_FIRST,
    CaseQuery,
    CaseTable,
    Selection,
    select_cases,
)
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Finished, Outcome
from napari_mamamia.widgets.batch.results_filters import FilterBar
from napari_mamamia.widgets.batch.results_model import COLUMN_WIDTHS, LEGEND, ResultsModel
from napari_mamamia.widgets.cases.page import CaseTable as CaseTableView
from napari_mamamia.widgets.controls.colours import QUIET_COLOUR, TINTS
from napari_mamamia.widgets.controls.controls import label, named, row
from napari_mamamia.widgets.score.tags_line import tags_menu

# Which rows of the case table are shown, in which order: worked out at once, or in a thread.

_AT_ONCE: Final = 5000
"""Rows that are filtered and sorted in a few milliseconds, so that no thread is needed."""
_WAIT_MS: Final = 80
"""Of a large table, wait for the next letter of a search."""
_LANE: Final = "results_order"


class CaseOrder(QObject):
    """Answers queries; of a large table only the newest.

    `ordered` carries the table and its `Selection`.
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
        self._wait.timeout.connect(self._start)

    def ask(self, table: CaseTable | None, query: CaseQuery) -> None:
        """Work out what a query shows of a table."""
        self._table, self._query = table, query
        self._jobs.cancel(_LANE)
        self._wait.stop()
        if table is None:
            return
        if len(table.rows) <= _AT_ONCE:
            self.ordered.emit(table, select_cases(table, query))
        else:
            self._wait.start()

    def _start(self) -> None:
        table, query = self._table, self._query
        if table is None:
            return

        def done(outcome: Outcome[Selection]) -> None:
            if isinstance(outcome, Finished):
                self.ordered.emit(table, outcome.result)

        self._jobs.start(
            _LANE, "Sorting the cases", lambda: select_cases(table, query), done, shown=False
        )


_NOTHING: Final = "Nothing was scored yet: page Batch scores folders of masks."


class CasesTab(QWidget):
    """`case_chosen` carries a case id, `tag_wanted` one, a tag and whether to add or remove it.

    `reordered` says that other rows are shown, or in another order; `model_chosen` carries the
    place of a model.
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
        self.filters.changed.connect(self._ask)
        self._make_table()
        self._lay_out()
        self.show_table(None, _NOTHING)

    # ---------------------------------------------------------------- for others

    def show_table(self, table: CaseTable | None, title: str) -> None:
        """Show the cases of another run, worst first, every one of them."""
        self._table, self._is_new = table, True
        self.summary.setText(title)
        self.filters.show_table(table)
        self.filters.setEnabled(table is not None)
        self._sort, self._upwards = WORST_FIRST, True
        self.table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.rows.show_rows(None, None)
        self.filters.clear_all()

    def update_table(self, table: CaseTable) -> None:
        """Show the same cases with more known of them, such as their tags."""
        self._table = table
        self.filters.show_table(table)
        self._ask()

    def show_models(self, names: list[str]) -> None:
        """Offer the models of a run; one alone needs no choice."""
        self.models.blockSignals(True)
        self.models.clear()
        self.models.addItems(names)
        self.models.blockSignals(False)
        self.models.setVisible(len(names) > 1)

    def set_current(self, case_id: str) -> None:
        """Mark the case that is open, and show its row where it is another one than before."""
        is_new, self._current = case_id != self._current, case_id
        self._mark_current()
        place = self._place_of_current()
        if is_new and place is not None:
            self.table.scrollTo(self.rows.index(place, 0))

    def tags_menu_at(self, place: int) -> object:
        """Return the menu of tags of a row."""
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
        """Select the row of the open case without going there: the table stays where it is."""
        place = self._place_of_current()
        if place is None:
            self.table.clearSelection()
            return
        self.table.setAutoScroll(False)
        self.table.selectRow(place)
        self.table.setAutoScroll(True)

    def _make_table(self) -> None:
        self.table: CaseTableView = named(
            CaseTableView(),
            "results_table",
            "Double-click or Enter opens a case with its errors in colour; a title sorts; right "
            "click sets tags",
        )
        self.table.setModel(self.rows)
        self.table.setAlternatingRowColors(False)
        self.table.setSortingEnabled(True)
        self.table.fit.set_widths(COLUMN_WIDTHS)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.table.horizontalHeader().setMinimumSectionSize(40)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.opened.connect(lambda at: self.case_chosen.emit(self.rows.case_id(at)))

    def _lay_out(self) -> None:
        self.summary: QLabel = named(QLabel(), "results_summary", "Which run this is")
        self.summary.setProperty("heading", True)
        self.summary.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.summary.setMinimumWidth(1)
        self.models: QComboBox = named(
            QComboBox(), "results_model", "Which model's cases the table shows"
        )
        self.models.currentIndexChanged.connect(lambda at: self.model_chosen.emit(at))
        self.models.hide()
        self.legend = label("results_legend", _legend_text(), "What the colours of the cells mean")
        title = row(self.summary, self.models)
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
        self._ask()

    def _ask(self) -> None:
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
        at = self.table.indexAt(where)
        if at.isValid():
            menu = self.tags_menu_at(at.row())
            menu.aboutToHide.connect(menu.deleteLater)  # type: ignore[attr-defined]
            menu.popup(self.table.viewport().mapToGlobal(where))  # type: ignore[attr-defined]


def _legend_text() -> str:
    parts = [f'<span style="color:#{TINTS[kind][-6:]}">■</span> {what}' for kind, what in LEGEND]
    return " &nbsp; ".join([*parts, f'<span style="color:{QUIET_COLOUR}">–</span> unknown'])
