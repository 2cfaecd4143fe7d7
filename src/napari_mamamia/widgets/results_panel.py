"""The panel at the bottom: the scored cases, worst first, and the cohort's numbers."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QFontDatabase
from qtpy.QtWidgets import (
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.records import CaseScore
from napari_mamamia.widgets.cases_page import CaseTable
from napari_mamamia.widgets.controls import named, row, tool_button
from napari_mamamia.widgets.results_model import STATUS_TEXTS, ResultsFilter, ResultsModel

__all__ = ["ResultsPanel"]

_WIDTHS: Final = (120, 100, 62, 80, 70, 80, 100, 110)


class ResultsPanel(QWidget):
    """`case_chosen` carries a case id, `fold_wanted` asks to fold the panel away."""

    case_chosen = Signal(str)
    fold_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("results_panel")
        self.model = ResultsModel()
        self.shown = ResultsFilter(self.model)
        self.tabs: QTabWidget = named(QTabWidget(), "results_tabs", "Cases and cohort's numbers")
        self.tabs.tabBar().setToolTip("Cases and cohort's numbers")
        self.tabs.addTab(self._make_cases(), "Case table")
        self.tabs.addTab(self._make_numbers(), "Cohort")
        fold = tool_button(
            "results_fold",
            "▾ Fold away",
            "Hides this table; page Batch shows it again",
            self.fold_wanted.emit,
        )
        self.tabs.setCornerWidget(fold)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 2, 8, 4)
        layout.addWidget(self.tabs)

    def show_results(self, summary: str, rows: Sequence[CaseScore], numbers: Sequence[str]) -> None:
        """Show a run: one line about it, its cases, and the cohort's numbers."""
        self.summary.setText(summary)
        self.search.clear()
        self.model.show_rows(rows)
        self._fill_statuses(rows)
        self.table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        self.numbers.setPlainText("\n".join(numbers))
        self._count()

    def set_current(self, case_id: str) -> None:
        """Mark the case that is open."""
        shown = self.case_ids()
        if case_id in shown:
            self.table.selectRow(shown.index(case_id))
        else:
            self.table.clearSelection()

    def case_ids(self) -> list[str]:
        """Return the cases as shown, in order."""
        return self.shown.case_ids()

    # -------------------------------------------------------------------- inner

    def _make_cases(self) -> QWidget:
        self.summary: QLabel = named(QLabel(), "results_summary", "Which run this is")
        self.summary.setProperty("heading", True)
        self.status: QComboBox = named(
            QComboBox(), "results_status", "Show only cases of one status"
        )
        self.status.currentIndexChanged.connect(self._choose_status)
        self.search: QLineEdit = named(
            QLineEdit(), "results_search", "Show only cases with these words, in any column of text"
        )
        self.search.setPlaceholderText("search")
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(200)
        self.search.textChanged.connect(self._search)
        self.count: QLabel = named(QLabel(), "results_count", "Cases in the table now")
        self.table: CaseTable = named(
            CaseTable(),
            "results_table",
            "Double-click or Enter opens a case with its errors in colour; a title sorts",
        )
        self.table.setModel(self.shown)
        self.table.setAlternatingRowColors(False)
        self.table.setSortingEnabled(True)
        for section, width in enumerate(_WIDTHS):
            self.table.setColumnWidth(section, width)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.table.opened.connect(lambda at: self.case_chosen.emit(self.shown.case_id(at)))
        holder = QWidget()
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(row(self.summary, 1, self.count, self.status, self.search))
        layout.addWidget(self.table)
        return holder

    def _make_numbers(self) -> QPlainTextEdit:
        self.numbers: QPlainTextEdit = named(
            QPlainTextEdit(), "results_numbers", "The cohort's numbers with intervals"
        )
        self.numbers.setReadOnly(True)
        self.numbers.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.numbers.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        return self.numbers

    def _fill_statuses(self, rows: Sequence[CaseScore]) -> None:
        counts = Counter(score.status for score in rows)
        self.status.blockSignals(True)
        self.status.clear()
        self.status.addItem(f"every status ({len(rows)})", None)
        for status, text in STATUS_TEXTS.items():
            if counts[status]:
                self.status.addItem(f"{text} ({counts[status]})", status)
        self.status.blockSignals(False)
        self.shown.set_status(None)

    def _choose_status(self, at: int) -> None:
        self.shown.set_status(self.status.itemData(at))
        self._count()

    def _search(self, text: str) -> None:
        self.shown.set_search(text)
        self._count()

    def _count(self) -> None:
        shown, total = self.shown.rowCount(), self.model.rowCount()
        self.count.setText("" if shown == total else f"{shown} of {total} cases")
