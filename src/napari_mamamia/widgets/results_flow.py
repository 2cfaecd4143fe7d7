"""The results at the bottom at work: a row opens its case with the errors in colour."""

from qtpy.QtCore import QObject

from napari_mamamia.io.phase_files import case_key
from napari_mamamia.services.show_case import CaseMasks
from napari_mamamia.widgets.agreement import Reviewing
from napari_mamamia.widgets.batch_flow import BatchAnswer, BatchFlow
from napari_mamamia.widgets.bottom import BottomDock
from napari_mamamia.widgets.cases_flow import CasesFlow
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.layers import Role, tag_for
from napari_mamamia.widgets.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.opening import Opening
from napari_mamamia.widgets.results_panel import ResultsPanel
from napari_mamamia.widgets.scene import Scene
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session, SessionMask

__all__ = ["ResultsFlow"]


class ResultsFlow(QObject):
    """Joins the panel, the run that it shows, and the review of its cases.

    While a review goes on (a row was opened, the agreement colours are on) every case that is
    opened is shown with the two masks that were scored, and next and previous go through the table.
    """

    def __init__(
        self,
        panel: ResultsPanel,
        bottom: BottomDock,
        batch: BatchFlow,
        cases: CasesFlow,
        opening: Opening,
        reviewing: Reviewing,
        session: Session,
        scene: Scene,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._panel = panel
        self._bottom = bottom
        self._cases = cases
        self._reviewing = reviewing
        self._session = session
        self._scene = scene
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._answer: BatchAnswer | None = None
        self._is_review = False
        batch.finished.connect(self._show)
        panel.case_chosen.connect(self.open_case)
        panel.fold_wanted.connect(bottom.fold)
        opening.case_shown.connect(self._follow)
        reviewing.switched.connect(self._on_switched)
        session.case_changed.connect(lambda: panel.set_current(session.case_id))

    def open_case(self, case_id: str) -> None:
        """Open a case of the table, its errors in colour, at the largest one."""
        own = self._own_id(case_id)
        if own is None:
            self._notifier.warn(f"{case_id} is not in the open data set: open its folder first.")
            return
        self._is_review = True
        self._session.set_queue([k for k in map(self._own_id, self._panel.case_ids()) if k])
        if own == self._session.case_id:
            self._follow()
        else:
            self._cases.open_case(own)

    # -------------------------------------------------------------------- inner

    def _show(self, answer: BatchAnswer) -> None:
        self._answer = answer
        self._panel.show_results(answer.title, answer.rows, answer.lines)
        self._panel.set_current(self._session.case_id)
        self._bottom.show()

    def _own_id(self, case_id: str) -> str | None:
        """Return how the open data set spells a case, None where it has no such case."""
        opened = self._session.opened
        if opened is None:
            return None
        known = {case_key(case.case_id): case.case_id for case in opened.data_set.cases}
        return known.get(case_key(case_id))

    def _on_switched(self, on: bool) -> None:
        self._is_review = self._is_review and on

    def _follow(self) -> None:
        """Show the masks that were scored of the case that was opened."""
        case, answer = self._session.case, self._answer
        if not self._is_review or case is None or answer is None:
            return
        files = {case_key(case_id): pair for case_id, pair in answer.pairs.items()}
        if case_key(case.case_id) not in files:
            return
        reference, prediction = files[case_key(case.case_id)]

        def read(outcome: Outcome[CaseMasks]) -> None:
            if isinstance(outcome, Finished) and self._session.case_id == case.case_id:
                self._review(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail(f"Opening {case.case_id} for review", outcome.error)

        self._jobs.start(
            "review",
            f"Reading what was scored of {case.case_id}",
            lambda: self._services.review_masks(
                case, reference, prediction, answer.summary.model.name
            ),
            read,
        )

    def _review(self, masks: CaseMasks) -> None:
        case = self._session.case
        if case is None:
            return
        roles = {mask.role for mask in masks.masks}
        if Role.PREDICTION not in roles:
            self._scene.remove_mask(Role.PREDICTION)
            self._session.drop_mask(Role.PREDICTION)
        for mask in masks.masks:
            role = Role(mask.role)
            self._scene.show_mask(tag_for(case, role), mask.buffer)
            self._session.set_mask(
                SessionMask(role, mask.name, mask.buffer, mask.labels, mask.values)
            )
        for problem in masks.problems:
            self._notifier.warn(problem)
        if roles >= {Role.REFERENCE, Role.PREDICTION}:
            self._reviewing.turn_on(Role.PREDICTION)
