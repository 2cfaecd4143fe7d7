"""Prefetching of the next case in the list while the reader views the current case."""

import logging
from typing import Final

from qtpy.QtCore import QTimer

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.read_ahead import CaseAhead
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_log = logging.getLogger(__name__)

_LANE: Final = "ahead"
_REST_MS: Final = 300
"""Idle time in ms before the next case is read; our choice.

The time starts after the last opening, listing or search.
"""


class Ahead(WindowPart):
    """Component that prefetches the next case after the open case is complete.

    At most one case is kept.
    """

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._kept: CaseAhead | None = None
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST_MS)
        self._rest.timeout.connect(self._read_next)
        session = self._session
        session.data_set_changed.connect(self.begin_again)
        session.case_changed.connect(self.begin_again)
        session.queue_changed.connect(self.begin_again)

    def take(self) -> CaseAhead | None:
        """Return the prefetched case, and stop prefetching."""
        case_ahead = self._kept
        self.stop()
        return case_ahead

    def stop(self) -> None:
        """Drop the prefetched case; nothing is read until `begin_again` is called."""
        self._rest.stop()
        self._jobs.cancel(_LANE)
        self._kept = None

    def begin_again(self) -> None:
        """Read the next case after a short time without changes."""
        if self._kept is None or self._find_next() is None:
            self.stop()
        self._rest.start()

    def _find_next(self) -> CaseContext | None:
        session = self._session
        case_id, opened = session.neighbour(1), session.opened
        is_busy = self._jobs.is_running("open") or self._jobs.is_running("list")
        is_filling = session.case is not None and not session.case.is_loaded
        if case_id is None or opened is None or is_busy or is_filling:
            return None
        return CaseContext(opened, case_id) if case_id in opened.data_set.by_id() else None

    def _read_next(self) -> None:
        context = self._find_next()
        if context is None:
            return
        files, record = context.files, context.record
        if self._kept is not None and (self._kept.files, self._kept.record) == (files, record):
            return
        self.stop()
        self._jobs.start(
            _LANE,
            tr("Prefetching {case_id}", case_id=context.case_id),
            lambda: self._services.read_ahead(files, record),
            self._keep_first,
            failed=_leave_for_opening,
            shown=False,
        )

    def _keep_first(self, ahead: CaseAhead | None) -> None:
        self._kept = ahead
        if ahead is None:
            return
        self._jobs.start(
            _LANE,
            tr("Prefetching the phases of {case_id}", case_id=ahead.case.case_id),
            lambda: self._services.read_rest_ahead(ahead),
            self._keep_all,
            failed=_leave_for_opening,
            shown=False,
        )

    def _keep_all(self, ahead: CaseAhead) -> None:
        self._kept = ahead


def _leave_for_opening(error: Exception) -> None:
    """Ignore the error, because opening the case reads it again and then reports the error."""
    _log.debug("the next case could not be read ahead", exc_info=error)
