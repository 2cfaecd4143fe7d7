"""The bottom panel with scored cases, cohort statistics, a leaderboard, curves and the log."""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, runtime_checkable

from qtpy.QtCore import Signal
from qtpy.QtGui import QFontDatabase, QHideEvent, QShowEvent
from qtpy.QtWidgets import QApplication, QPlainTextEdit, QTabWidget, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.event_log import LogLine
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.pages import find_page, load_tabs
from napari_mamamia.widgets.batch.results_cases import CasesTab
from napari_mamamia.widgets.batch.results_cohort import CohortTab
from napari_mamamia.widgets.controls.controls import fill_column, label, named, row, tool_button
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.tab_order import ReadingOrder
from napari_mamamia.widgets.kinetics.curves_tab import CurvesTab

_MOST_LINES: Final = 2000


class LogTab(QWidget):
    """The Log tab with the newest 2,000 lines."""

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
            tr(
                "Cases are listed by their position in the data set, and folders without their "
                "names."
            ),
            tr("The log contains no patient names, so you can send it with a problem report."),
        )
        self.copy = tool_button(
            "log_copy",
            tr("Copy all"),
            tr("Copies the whole log, for example for a problem report."),
            self._copy_lines,
        )
        self.empty = tool_button("log_clear", tr("Clear"), tr("Clears the log."), self.lines.clear)
        for tool in (self.copy, self.empty):
            tool.setProperty("framed", True)
        line = row(note, self.copy, self.empty)
        line.layout().setStretch(0, 1)
        fill_column(self, line, self.lines, margins=(0, 4, 0, 0))

    def add(self, line: LogLine) -> None:
        """Append an event."""
        self.lines.appendPlainText(str(line))

    def _copy_lines(self) -> None:
        clipboard = QApplication.clipboard()
        if clipboard is not None:
            clipboard.setText(self.lines.toPlainText())


@runtime_checkable
class KeyTable(Protocol):
    """A tab with a table that can be navigated with the keyboard."""

    def has_keyboard(self) -> bool:
        """Return whether the table has the keyboard focus."""


class ResultsPanel(ReadingOrder, QWidget):
    """The bottom panel; `fold_wanted` requests to hide it, and its tabs have their own signals.

    `seen` reports that the panel became visible or hidden, and `scored` that a run has new results.
    """

    fold_wanted = Signal()
    seen = Signal(bool)
    scored = Signal()

    def __init__(self, jobs: JobRunner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("results_panel")
        self.cases = CasesTab(jobs)
        self.cohort = CohortTab()
        self.extra: dict[str, QWidget] = {name: kind() for name, kind in load_tabs().items()}
        self.curves = CurvesTab()
        self.log = LogTab()
        self.tabs: QTabWidget = named(QTabWidget(), "results_tabs", "")
        self.tabs.tabBar().setToolTip(tr("Pages of this panel."))
        tabs: list[tuple[QWidget, str, str]] = [
            (self.cases, tr("Case table"), tr("The scored cases, with the worst first.")),
            (
                self.cohort,
                tr("Cohort"),
                tr("Summary statistics of the cohort with intervals and figures."),
            ),
            *((page, tr(name), tr(find_page(name).tip)) for name, page in self.extra.items()),
            (
                self.curves,
                tr("Curves"),
                tr("Contrast curves of the pointer position, the mask and pinned regions."),
            ),
            (self.log, tr("Log"), tr("The plugin's messages.")),
        ]
        self.pages: tuple[QWidget, ...] = tuple(page for page, _, _ in tabs)
        for page in self.pages:
            # The page is not a child until `fill_steps`, because children are styled in one
            # iteration with the panel.
            page.setParent(parent)
            page.hide()
        # On a small screen, a page scrolls instead of enlarging the window.
        self._areas = [
            PageArea(QWidget(), f"{page.objectName()}_results_area") for page in self.pages
        ]
        for area, (_, text, tip) in zip(self._areas, tabs, strict=True):
            self.tabs.addTab(area, text)
            self.tabs.setTabToolTip(self.tabs.count() - 1, tip)
        fold = tool_button(
            "results_fold",
            tr("▾ Fold away"),
            tr("Hides this panel; the Batch page shows it again."),
            self.fold_wanted.emit,
        )
        self.tabs.setCornerWidget(fold)
        fill_column(self, self.tabs, margins=(8, 2, 8, 4))

    def fill_steps(self) -> list[Callable[[], None]]:
        """Return steps of 10 to 40 ms each that add the pages after the panel has been placed.

        Qt needs this time to style a page when it is added to a window.
        """
        return [partial(self._put_in, index) for index in range(len(self.pages))]

    def showEvent(self, event: QShowEvent) -> None:
        """Add missing pages, because a visible panel must be complete."""
        super().showEvent(event)
        for step in self.fill_steps():
            step()
        self.seen.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Emit `seen`, because the panel is hidden."""
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
        """Return the ids of the displayed cases, in order."""
        return self.cases.rows.case_ids()

    def show_curves(self) -> None:
        """Show the contrast curves."""
        self._turn_to(self.curves)

    def show_extra(self, name: str) -> None:
        """Show the tab of a feature if a tab has this name."""
        if name in self.extra:
            self._turn_to(self.extra[name])

    def has_keyboard(self) -> bool:
        """Return whether a table in a feature's tab has the keyboard focus."""
        return any(
            page.has_keyboard() for page in self.extra.values() if isinstance(page, KeyTable)
        )

    def show_log(self) -> None:
        """Show the log."""
        self._turn_to(self.log)

    def show_cases(self) -> None:
        """Show the case table."""
        self._turn_to(self.cases)

    def show_cohort(self) -> None:
        """Show the cohort statistics."""
        self._turn_to(self.cohort)
