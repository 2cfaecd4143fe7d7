"""Scores of what is on screen: asked for again after each edit, computed in a thread."""

from typing import Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.services.case.show_case import ShownScores
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session

_WAIT_MS: Final = 400
_SCORED: Final = (Role.PREDICTION, Role.REFINED)


class Scoring(QObject):
    """`scored` carries `ShownScores` of the open case, or None while there is nothing to score."""

    scored = Signal(object)

    def __init__(
        self, session: Session, jobs: JobRunner, services: Services, notifier: Notifier
    ) -> None:
        super().__init__()
        self._session = session
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self.is_wanted = False
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_WAIT_MS)
        self._wait.timeout.connect(self._start)
        session.masks_changed.connect(self.ask)
        session.mask_edited.connect(self.ask)

    def want(self, wanted: bool) -> None:
        """Score from now on, because the page that shows scores is on screen, or stop."""
        self.is_wanted = wanted
        if wanted:
            self.ask()

    def ask(self) -> None:
        """Score again in a moment; only the newest answer counts."""
        if self.is_wanted:
            self._wait.start()

    def _start(self) -> None:
        case = self._session.case
        masks, counting = self._session.masks, self._session.counting
        shown = {str(role): masks[role].raw_values for role in _SCORED if role in masks}
        reference = self._session.mask(Role.REFERENCE)
        if case is None or not (shown or reference):
            self.scored.emit(None)
            return

        def done(outcome: Outcome[ShownScores]) -> None:
            if isinstance(outcome, Finished):
                self.scored.emit(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail(f"Scoring {case.case_id}", outcome.error)

        self._jobs.start(
            "score",
            "Scoring",
            lambda: self._services.score_shown(
                case, reference.raw_values if reference else None, shown, counting
            ),
            done,
            shown=False,
        )
