"""Predicting the open case: one job, its candidates, and the file of the result."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError, SaveConflictError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.segmenter import Candidate, Prediction, Prompt, Segmenter
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.predict.doubt import Doubt, DoubtKind
from napari_mamamia.services.predict.keep_prediction import KeptPrediction
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome, Stopped
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session, SessionMask
from napari_mamamia.widgets.base.turns import Turns
from napari_mamamia.widgets.viewer.scene import Scene


@dataclass(frozen=True, slots=True)
class Keeping:
    """What becomes of a prediction that exists: it may go, or the new one is kept `beside` it."""

    replaces: KeptPrediction | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OlderFound:
    """A run that waits for word on the prediction that exists."""

    older: KeptPrediction
    segmenter: Segmenter
    prompt: Prompt | None


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A prediction, its mask for the screen, where to look, and why it is not saved, if so.

    `case` and `context` are those that the work began with: the window may show others by now.
    `kept` is its file in the workspace, None where it is not saved; `older` then is the one that
    lies in its place, if that is why. `doubt` is its map of doubt, None where the model gave no
    probability; `doubt_kinds` are those that can be shown.
    """

    case: Case
    context: CaseContext | None
    prediction: Prediction
    chosen: int
    buffer: NDArray[np.uint8]
    place: tuple[int, int, int] | None
    not_saved: str = ""
    kept: KeptPrediction | None = None
    older: KeptPrediction | None = None
    doubt: Doubt | None = None
    doubt_kinds: tuple[DoubtKind, ...] = ()


_SHOWN: Final = {
    DoubtKind.ENTROPY: ("doubt [bit]", 1.0),
    DoubtKind.VARIANCE: ("variance between models", 0.25),
}
"""How a map of doubt is called, and its largest possible value."""


class Predicting(QObject):
    """`answered` carries an `Answer`; `running_changed` whether a prediction runs.

    `older_found` carries an `OlderFound`, in place of an answer: nothing runs until it is said what
    becomes of the prediction that exists.

    `ended` says what became of one without an answer, `failed` then carries its error, and
    `doubt_found` the `Doubt` of another kind that was asked for.
    """

    answered = Signal(object)
    older_found = Signal(object)
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
        self._later = Turns(self)

    def start(
        self, segmenter: Segmenter, prompt: Prompt | None = None, keeping: Keeping | None = None
    ) -> None:
        """Predict the open case; an older prediction that still runs is stopped.

        Without `keeping`, a prediction of this model that exists is told of first.
        """
        case, context = self._session.case, self._session.context
        if case is None:
            return

        def done(outcome: Outcome[Answer | KeptPrediction]) -> None:
            self.running_changed.emit(self._jobs.is_running("predict"))
            if isinstance(outcome, Finished):
                self._take_answer(outcome.result, case, segmenter, prompt)
            elif isinstance(outcome, Failed):
                self.ended.emit(f"failed: {outcome.error}")
                self._notifier.fail(f"Predicting {case.case_id}", outcome.error)
                self.failed.emit(outcome.error)
            elif isinstance(outcome, Stopped):
                self.ended.emit("stopped: nothing was changed")

        self._jobs.start(
            "predict",
            f"Predicting {case.case_id}",
            lambda: self._work(case, context, segmenter, prompt, keeping),
            done,
        )
        self.running_changed.emit(True)

    def keep(self, answer: Answer, keeping: Keeping) -> None:
        """Save an answer that was not saved, because another prediction lies in its place."""
        self._finish_again(answer, answer.prediction, answer.chosen, keeping, "Saving")

    def cancel(self) -> None:
        """Stop the prediction that runs."""
        self._jobs.cancel("predict")

    def choose(self, candidate: Candidate) -> None:
        """Make another candidate the prediction, and go there; its own file is written anew."""
        answer = self._answer
        if answer is not None and self._session.shows(answer.case):
            chosen = self._services.choose_candidate(answer.prediction, candidate)
            title = f"Candidate {candidate.rank}"
            self._finish_again(answer, chosen, candidate.rank, Keeping(answer.kept), title)

    def look_for_doubt(self, kind: DoubtKind) -> None:
        """Show the doubt of the prediction on screen by another measure."""
        answer = self._answer
        if answer is None or not self._session.shows(answer.case):
            return

        def done(outcome: Outcome[Doubt]) -> None:
            if not self._session.shows(answer.case):
                return
            if isinstance(outcome, Finished):
                self._show_doubt(answer.case, answer.prediction, outcome.result)
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
        self,
        case: Case,
        context: CaseContext | None,
        segmenter: Segmenter,
        prompt: Prompt | None,
        keeping: Keeping | None,
    ) -> Answer | KeptPrediction:
        if context is not None and keeping is None:
            report_progress(0, 1, "Looking for an earlier prediction")
            kept = self._services.predict.kept
            older = kept(context.workspace, segmenter.name, context.case_id)
            if older is not None:
                return older
        prediction = self._services.predict_case(case, segmenter, prompt)
        return self._finish(case, context, prediction, 1, keeping or Keeping())

    def _finish(
        self,
        case: Case,
        context: CaseContext | None,
        prediction: Prediction,
        chosen: int,
        keeping: Keeping,
    ) -> Answer:
        calls, not_saved, kept, older = self._services.predict, "", None, None
        kinds = calls.doubt_kinds(prediction)
        doubt = None
        if kinds:
            doubt = calls.doubt_of(prediction, kinds[0])
        buffer = prediction.mask.array.astype(np.uint8)
        place = self._services.centre_of_largest_part(buffer, case.grid)
        if context is not None:
            try:
                kept = calls.keep(
                    prediction, case, context.workspace, keeping.replaces, beside=keeping.beside
                )
            except SaveConflictError as error:
                not_saved, name = str(error), _made_by(prediction)
                older = calls.kept(context.workspace, name, context.case_id)
            except MamamiaError as error:
                not_saved = str(error)
        return Answer(
            case, context, prediction, chosen, buffer, place, not_saved, kept, older, doubt, kinds
        )

    # ----------------------------------------------------------- in the GUI thread

    def _finish_again(
        self, answer: Answer, prediction: Prediction, chosen: int, keeping: Keeping, title: str
    ) -> None:
        """Save and show what was made of an answer."""

        def done(outcome: Outcome[Answer]) -> None:
            if isinstance(outcome, Finished):
                self._show(outcome.result)
            elif isinstance(outcome, Failed):
                self._notifier.fail(title, outcome.error)

        self._jobs.start(
            "predict",
            title,
            lambda: self._finish(answer.case, answer.context, prediction, chosen, keeping),
            done,
            shown=False,
        )

    def _take_answer(
        self,
        found: Answer | KeptPrediction,
        case: Case,
        segmenter: Segmenter,
        prompt: Prompt | None,
    ) -> None:
        if isinstance(found, Answer):
            self._show(found)
        elif self._session.shows(case):
            self.older_found.emit(OlderFound(found, segmenter, prompt))

    def _show(self, answer: Answer) -> None:
        """Show an answer if its case is still open; tell of it in any case."""
        if answer.not_saved:
            self._notifier.warn_loudly(f"The prediction is not saved: {answer.not_saved}")
        elif answer.context is not None:
            opened = answer.context.opened
            self._session.set_row(opened, self._services.case_row(opened, answer.case.case_id))
        if not self._session.shows(answer.case):
            if answer.context is not None:
                where = answer.context.opened.data_set.name
                self._notifier.hint(f"Predicted {answer.case.case_id} of {where}, open before.")
            return
        made = answer.prediction.mask.provenance
        is_new = self._scene.layer(Role.PREDICTION) is None
        self._scene.show_mask(tag_for(answer.case, Role.PREDICTION, made), answer.buffer)
        self._later.start([partial(self._take_up, answer)] if is_new else [])
        if not is_new:
            self._take_up(answer)

    def _take_up(self, answer: Answer) -> None:
        """Make an answer the prediction of its case: a turn later where it got a new layer."""
        if not self._session.shows(answer.case):
            return
        self._answer = answer
        made = answer.prediction.mask.provenance
        name = answer.kept.name if answer.kept else _made_by(answer.prediction)
        file = answer.kept.file if answer.kept else None
        self._session.set_mask(
            SessionMask(Role.PREDICTION, name, answer.buffer, provenance=made, file=file)
        )
        self._show_doubt(answer.case, answer.prediction, answer.doubt)
        if answer.place is not None:
            self._scene.view.go_to(answer.place, centre=False)
        self.answered.emit(answer)

    def _show_doubt(self, case: Case, prediction: Prediction, doubt: Doubt | None) -> None:
        if doubt is None:
            self._scene.overlays.hide_doubt()
            return
        tag = tag_for(case, Role.DOUBT, prediction.mask.provenance)
        self._scene.overlays.show_doubt(tag, doubt.amount, *_SHOWN[doubt.kind])


def _made_by(prediction: Prediction) -> str:
    made = prediction.mask.provenance
    return made.name if made else ""
