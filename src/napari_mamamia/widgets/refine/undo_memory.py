"""How much memory undo holds, and the limit that a reader sets for it."""

import logging
from dataclasses import replace
from typing import Final

from qtpy.QtCore import QObject

from napari_mamamia.core.errors import SaveError
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.history_list import LIMITS_MB, HistoryList

_log = logging.getLogger(__name__)
_MB: Final = 1 << 20
_KEY: Final = "undo_mb"


class UndoMemory(QObject):
    """Joins the list of steps, the session's history and the preferences.

    Steps beyond the limit are not lost: they are read back from the journal.
    """

    def __init__(self, history: HistoryList, editing: Editing, services: Services) -> None:
        super().__init__()
        self._list = history
        self._editing = editing
        self._services = services
        kept = dict(services.load_preferences().view).get(_KEY, "")
        if kept.isdigit() and int(kept) in LIMITS_MB:
            history.set_limit(int(kept))
        history.limit_wanted.connect(self._set_limit)
        editing.opened.connect(self._begin)
        editing.stepped.connect(self._show)

    def _begin(self) -> None:
        live = self._editing.live
        if live is not None:
            live.history.limit_bytes = self._list.limit_mb * _MB
        self._show()

    def _set_limit(self, megabytes: int) -> None:
        self._begin()
        preferences = self._services.load_preferences()
        view = tuple((dict(preferences.view) | {_KEY: str(megabytes)}).items())
        try:
            self._services.save_preferences(replace(preferences, view=view))
        except SaveError as error:
            _log.warning("the limit of undo was not remembered: %s", error)

    def _show(self) -> None:
        live = self._editing.live
        self._list.show_memory(None if live is None else live.history.nbytes / _MB)
