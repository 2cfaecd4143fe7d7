"""Predicting the open case: one job, its candidates, and the file of the result."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import Job
from napari_mamamia.io.workspace import Workspace
from napari_mamamia.segmentation.segmenter import Candidate, Prediction, Prompt, Segmenter
from napari_mamamia.services.doubt import Doubt, DoubtKind
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.layers import Role, tag_for
from napari_mamamia.widgets.notify import Failed, Finished, Notifier, Outcome, Stopped
from napari_mamamia.widgets.scene import Scene
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session, SessionMask

__all__ = ["Answer", "Predicting"]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A prediction, its mask for the screen, where to look, and why it is not saved, if so.

    `doubt` is its map of doubt, None where the model gave no probability; `doubt_kinds` are those
    that can be shown.
    """

    case_id: str
    prediction: Prediction
    chosen: int
    buffer: NDArray[np.uint8]
    place: tuple[int, int, int] | None
    not_saved: str = ""
    doubt: Doubt | None = None
    doubt_kinds: tuple[DoubtKind, ...] = ()


_SHOWN: Final = {
    DoubtKind.ENTROPY: ("doubt [bit]", 1.0),
    DoubtKind.VARIANCE: ("variance between models", 0.25),
}
"""How a map of doubt is called, and its largest possible value."""


class Predicting(QObject):
    """`answered` carries an `Answer`; `running_changed` whether a prediction runs.

    `ended` says what became of one without an answer, `failed` then carries its error, and
    `doubt_found` the `Doubt` of another kind that was asked for.
    """

    answered = Signal(object)
    ended = Signal(str)
    failed = Signal(object)
    doubt_found = Signal(object)
    running_changed = Signal(bool)

    def __init__(
        self,
        session: Session,
        scene: Scene,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._session = session
        self._scene = scene
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._answer: Answer | None = None

    def start(self, segmenter: Segmenter, prompt: Prompt | None = None) -> None:
        """Predict the open case; an older prediction that still runs is stopped."""
        case, workspace = self._session.case, self._session.workspace
        if case is None:
            return

        def done(outcome: Outcome[Answer]) -> None:
            self.running_changed.emit(False)
            if isinstance(outcome, Finished):
                self._show(outcome.result)
            elif isinstance(outcome, Failed):
                self.ended.emit(f"failed: {outcome.error}")
                self._notifier.fail(f"Predicting {case.case_id}", outcome.error)
                self.failed.emit(outcome.error)
            elif isinstance(outcome, Stopped):
                self.ended.emit("stopped: nothing was changed")

        self._jobs.start(
            "predict",
            f"Predicting {case.case_id}",
            lambda: self._work(case, workspace, segmenter, prompt),
            done,
        )
        self.running_changed.emit(True)

    def cancel(self) -> None:
        """Stop the prediction that runs."""
        self._jobs.cancel("predict")

    def choose(self, candidate: Candidate) -> None:
        """Make another candidate the prediction, and go there."""
        answer, case = self._answer, self._session.case
        if answer is None or case is None or answer.case_id != case.case_id:
            return
        workspace = self._session.workspace

        def done(outcome: Outcome[Answer]) -> None:
            if isinstance(outcome, Finished):
                self._show(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail(f"Showing candidate {candidate.rank}", outcome.error)

        self._jobs.start(
            "predict",
            f"Candidate {candidate.rank}",
            lambda: self._take(case, workspace, answer.prediction, candidate),
            done,
            shown=False,
        )

    def look_for_doubt(self, kind: DoubtKind) -> None:
        """Show the doubt of the prediction on screen by another measure."""
        answer, case = self._answer, self._session.case
        if answer is None or case is None or answer.case_id != case.case_id:
            return

        def done(outcome: Outcome[Doubt]) -> None:
            if isinstance(outcome, Finished):
                self._show_doubt(case, answer.prediction, outcome.result)
                self.doubt_found.emit(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail("Looking for doubtful places", outcome.error)

        self._jobs.start(
            "doubt",
            "Looking for doubtful places",
            lambda: self._services.predict.doubt_of(answer.prediction, kind),
            done,
        )

    # -------------------------------------------------------- in the worker thread

    def _work(
        self, case: Case, workspace: Workspace | None, segmenter: Segmenter, prompt: Prompt | None
    ) -> Job[Answer]:
        prediction = yield from self._services.predict_case(case, segmenter, prompt)
        return (yield from self._finish(case, workspace, prediction, chosen=1))

    def _take(
        self, case: Case, workspace: Workspace | None, made: Prediction, candidate: Candidate
    ) -> Job[Answer]:
        prediction = self._services.choose_candidate(made, candidate)
        return (yield from self._finish(case, workspace, prediction, candidate.rank))

    def _finish(
        self, case: Case, workspace: Workspace | None, prediction: Prediction, chosen: int
    ) -> Job[Answer]:
        not_saved = ""
        if workspace is not None:
            try:
                name = prediction.mask.provenance.name if prediction.mask.provenance else ""
                target = workspace.prediction(name, case.case_id)
                yield from self._services.save_prediction(prediction, case, target, overwrite=True)
            except MamamiaError as error:
                not_saved = str(error)
        buffer = prediction.mask.array.astype(np.uint8)
        place = self._services.centre_of_largest_part(buffer, case.grid)
        kinds = self._services.predict.doubt_kinds(prediction)
        doubt = None
        if kinds:
            doubt = yield from self._services.predict.doubt_of(prediction, kinds[0])
        return Answer(case.case_id, prediction, chosen, buffer, place, not_saved, doubt, kinds)

    # ----------------------------------------------------------- in the GUI thread

    def _show(self, answer: Answer) -> None:
        case = self._session.case
        if case is None or case.case_id != answer.case_id:
            return
        self._answer = answer
        made = answer.prediction.mask.provenance
        self._scene.show_mask(tag_for(case, Role.PREDICTION, made), answer.buffer)
        self._session.set_mask(
            SessionMask(Role.PREDICTION, made.name if made else "", answer.buffer, provenance=made)
        )
        self._show_doubt(case, answer.prediction, answer.doubt)
        if answer.place is not None:
            self._scene.view.go_to(answer.place, centre=False)
        if answer.not_saved:
            self._notifier.warn_loudly(f"The prediction is shown but not saved: {answer.not_saved}")
        elif self._session.opened is not None and self._session.files is not None:
            self._session.set_row(self._services.case_row(self._session.opened, case.case_id))
        self.answered.emit(answer)

    def _show_doubt(self, case: Case, prediction: Prediction, doubt: Doubt | None) -> None:
        if doubt is None:
            self._scene.overlays.hide_doubt()
            return
        tag = tag_for(case, Role.DOUBT, prediction.mask.provenance)
        self._scene.overlays.show_doubt(tag, doubt.amount, *_SHOWN[doubt.kind])
