"""The open case's prediction, read again when another was written to the workspace meanwhile.

Predict all, a command in a terminal or another window may have made it. What is looked at in a
review, or was not saved, is left as it is; so is a mask that the user took away.
"""

from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.texts import tr
from napari_mamamia.io.workspace.workspace import FileState
from napari_mamamia.services.case.context import CaseContext, CaseKey
from napari_mamamia.services.case.show_case import OpenMask
from napari_mamamia.widgets.base.jobs import RunningJob
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "refresh"
_WRITERS: Final = ("predict all", "import run")
"""Lanes of jobs that may have written a prediction of the open case."""
_NOT_SHOWN: Final = tr("A newer prediction is not shown: {}")


class MaskRefresh(WindowPart):
    """Looks when such a job ended, and whenever `look` is called."""

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._key: CaseKey = self._session.case_key
        self._seen: FileState | None = None
        self._session.case_changed.connect(self._follow_case)
        self._session.masks_changed.connect(self._remember_file)
        self._jobs.ended.connect(self._on_job_ended)

    def look(self) -> None:
        """Look for a newer prediction of the open case, and show it."""
        case, context = self._session.case, self._session.context
        if case is None or context is None or self._is_busy():
            return
        seen = self._seen

        def show(mask: OpenMask | None) -> None:
            if mask is not None:
                self._show_prediction(case, context, mask)

        newer, workspace = self._services.newer_prediction, context.workspace
        self._jobs.start(
            _LANE,
            tr("Looking for a newer prediction"),
            lambda: newer(case, workspace, seen),
            show,
            failed=lambda error: self._notifier.warn(_NOT_SHOWN.format(plain_text(error))),
            still=lambda: self._session.shows(case) and self._seen == seen,
            shown=False,
        )

    # -------------------------------------------------------------------- inner

    def _is_busy(self) -> bool:
        """Whether something else is about to show a prediction, or shows one that is not a file."""
        mask = self._session.mask(Role.PREDICTION)
        is_other = mask is not None and mask.file is None
        return is_other or any(map(self._jobs.is_running, ("predict", "open", "review")))

    def _follow_case(self) -> None:
        if self._session.case_key != self._key:
            self._key, self._seen = self._session.case_key, None

    def _remember_file(self) -> None:
        mask = self._session.mask(Role.PREDICTION)
        if mask is not None and mask.file is not None:
            self._seen = mask.file

    def _on_job_ended(self, ticket: RunningJob, _outcome: object) -> None:
        if ticket.lane in _WRITERS:
            self.look()

    def _show_prediction(self, case: Case, context: CaseContext, found: OpenMask) -> None:
        self._scene.overlays.hide_doubt()
        tag = tag_for(case, Role.PREDICTION, found.provenance)
        self._scene.show_mask(tag, found.buffer)
        self._session.set_mask(
            SessionMask(
                Role.PREDICTION,
                found.name,
                found.buffer,
                found.labels,
                found.values,
                found.provenance,
                file=found.file,
            )
        )
        row = self._services.case_row(context.opened, context.case_id)
        self._session.set_row(context.opened, row)
        self._notifier.hint(tr("{name}'s newer prediction of this case is shown.", name=found.name))
