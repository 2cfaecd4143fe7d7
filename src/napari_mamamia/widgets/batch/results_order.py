"""Which rows of the case table are shown, in which order: worked out at once, or in a thread."""

from typing import Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.core.progress import run_job
from napari_mamamia.services.score.case_table import CaseQuery, CaseTable, Selection, select_cases
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Finished, Outcome

__all__ = ["CaseOrder"]

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
            self.ordered.emit(table, run_job(select_cases(table, query)))
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
