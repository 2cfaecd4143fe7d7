"""The bottom panel: scored cases, the cohort's numbers, a leaderboard, curves, the log."""

from collections.abc import Callable
from functools import partial
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtGui import QFontDatabase, QHideEvent, QShowEvent
from qtpy.QtWidgets import QApplication, QPlainTextEdit, QTabWidget, QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.features.challenge.widgets.view import LeaderboardTab
from napari_mamamia.widgets.base.event_log import LogLine
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.batch.results_cases import CasesTab
from napari_mamamia.widgets.batch.results_cohort import CohortTab
from napari_mamamia.widgets.controls.controls import label, named, row, tool_button
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.tab_order import ReadingOrder
from napari_mamamia.widgets.kinetics.curves_tab import CurvesTab

_MOST_LINES: Final = 2000


class LogTab(QWidget):
    """Shows the newest 2,000 lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: QPlainTextEdit = named(
            QPlainTextEdit(),
            "log_lines",
            tr("Time, level and text of the plugin's messages."),
        )
        self.lines.setReadOnly(True)
        self.lines.setMaximumBlockCount(_MOST_LINES)
        self.lines.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.lines.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        note = label(
            "log_note",
            tr("Cases are listed by their position in the data set, folders without their names."),
            tr("The log contains no patient's name, so that it can be sent with a problem report."),
        )
        self.copy = tool_button(
            "log_copy",
            tr("Copy all"),
            tr("Copies the whole log, for example for a problem report."),
            self._copy_lines,
        )
        self.empty = tool_button("log_clear", tr("Clear"), tr("Empties the log."), self.lines.clear)
        for tool in (self.copy, self.empty):
            tool.setProperty("framed", True)
        line = row(note, self.copy, self.empty)
        line.layout().setStretch(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(line)
        layout.addWidget(self.lines)

    def add(self, line: LogLine) -> None:
        """Show one more event."""
        self.lines.appendPlainText(str(line))

    def _copy_lines(self) -> None:
        clipboard = QApplication.clipboard()
        if clipboard is not None:
            clipboard.setText(self.lines.toPlainText())


_TIPS = (
    tr("The scored cases, worst first."),
    tr("The cohort's numbers with intervals, and figures."),
    tr("Teams of a ranking, and each case of each team."),
    tr("Contrast curves of the pointer, the mask and pinned regions."),
    tr("The plugin's messages."),
)


class ResultsPanel(ReadingOrder, QWidget):
    """The panel; `fold_wanted` requests to fold it; the tabs have signals of their own.

    `seen` reports that the panel became visible or hidden.
    """

    fold_wanted = Signal()
    seen = Signal(bool)

    def __init__(self, jobs: JobRunner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("results_panel")
        self.cases = CasesTab(jobs)
        self.cohort = CohortTab()
        self.leaderboard = LeaderboardTab()
        self.curves = CurvesTab()
        self.log = LogTab()
        self.tabs: QTabWidget = named(QTabWidget(), "results_tabs", "")
        self.tabs.tabBar().setToolTip(tr("Pages of this panel."))
        self.pages: tuple[QWidget, ...] = (
            self.cases,
            self.cohort,
            self.leaderboard,
            self.curves,
            self.log,
        )
        names = (tr("Case table"), tr("Cohort"), tr("Leaderboard"), tr("Curves"), tr("Log"))
        for page in self.pages:
            # Not a child until `fill_steps`: children are styled in one iteration with the panel.
            page.setParent(parent)
            page.hide()
        # On a small screen a page scrolls, and no window grows for it.
        self._areas = [
            PageArea(QWidget(), f"{page.objectName()}_results_area") for page in self.pages
        ]
        for area, text, tip in zip(self._areas, names, _TIPS, strict=True):
            self.tabs.addTab(area, text)
            self.tabs.setTabToolTip(self.tabs.count() - 1, tip)
        fold = tool_button(
            "results_fold",
            tr("▾ Fold away"),
            tr("Hides this panel; page Batch shows it again."),
            self.fold_wanted.emit,
        )
        self.tabs.setCornerWidget(fold)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 2, 8, 4)
        layout.addWidget(self.tabs)

    def fill_steps(self) -> list[Callable[[], None]]:
        """Return steps that add the pages once the panel is in its final place; 10 to 40 ms each.

        Qt takes that long to style one in a window that it is added to.
        """
        return [partial(self._put_in, index) for index in range(len(self.pages))]

    def showEvent(self, event: QShowEvent) -> None:
        """Add missing pages: a visible panel has its pages."""
        super().showEvent(event)
        for step in self.fill_steps():
            step()
        self.seen.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Report that the panel was hidden."""
        super().hideEvent(event)
        self.seen.emit(False)

    def _put_in(self, at: int) -> None:
        page, area = self.pages[at], self._areas[at]
        if area.widget() is not page:
            area.setWidget(page)
            page.show()

    def _turn_to(self, page: QWidget) -> None:
        self.tabs.setCurrentIndex(self.pages.index(page))

    def case_ids(self) -> list[str]:
        """Return the cases as shown, in order."""
        return self.cases.rows.case_ids()

    def show_curves(self) -> None:
        """Show the contrast curves."""
        self._turn_to(self.curves)

    def show_leaderboard(self) -> None:
        """Show the leaderboard."""
        self._turn_to(self.leaderboard)

    def show_log(self) -> None:
        """Show the log."""
        self._turn_to(self.log)

    def show_cases(self) -> None:
        """Show the case table."""
        self._turn_to(self.cases)

    def show_cohort(self) -> None:
        """Show the cohort's numbers."""
        self._turn_to(self.cohort)
