"""Prediction of the open case or of all cases in the data set: jobs, candidates and files."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Signal

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError, SaveConflictError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.texts import tr
from napari_mamamia.segmentation.model.segmenter import Candidate, Prediction, Prompt, Segmenter
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.predict.cases import PredictSummary
from napari_mamamia.services.predict.keep_prediction import KeptPrediction
from napari_mamamia.services.predict.uncertainty import Uncertainty, UncertaintyKind
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart


@dataclass(frozen=True, slots=True)
class Keeping:
    """The choice for an existing prediction: replace it, or keep both predictions (`beside`)."""

    replaces: KeptPrediction | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OlderFound:
    """A run that waits for the user's decision about an existing prediction."""

    older: KeptPrediction
    segmenter: Segmenter
    prompt: Prompt | None


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A prediction with its mask, the position to show, and the reason if it was not saved.

    `case` and `context` are from the start of the run; the window may show a different case by now.
    `kept` is the file in the workspace, or None if the prediction is not saved; `older` is the
    existing prediction that prevents saving. `doubt` is the uncertainty map, or None if the model
    returned no probabilities. `uncertainty_kinds` are the available measures.
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
    uncertainty: Uncertainty | None = None
    uncertainty_kinds: tuple[UncertaintyKind, ...] = ()


_SHOWN: Final = {
    UncertaintyKind.ENTROPY: (tr("uncertainty [bit]"), 1.0),
    UncertaintyKind.VARIANCE: (tr("variance between models"), 0.25),
}
"""Name and maximum value of each type of uncertainty map."""


class Predicting(WindowPart):
    """A component that predicts the open case.

    The signal `answered` carries an `Answer`; `running_changed` carries whether a prediction is
    running. `older_found` carries an `OlderFound` instead of an answer: the run starts only after
    the user has decided about the existing prediction.

    `ended` carries the outcome of a run without an answer, and `failed` the error of a run.
    `uncertainty_found` carries the `Uncertainty` by the requested measure.
    """

    answered = Signal(object)
    older_found = Signal(object)
    ended = Signal(str)
    failed = Signal(object)
    uncertainty_found = Signal(object)
    running_changed = Signal(bool)

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._answer: Answer | None = None
        self._later = EventLoopSteps(self)

    def start(
        self, segmenter: Segmenter, prompt: Prompt | None = None, keeping: Keeping | None = None
    ) -> None:
        """Predict the open case, stopping an older prediction that is still running.

        Without `keeping`, an existing prediction by this model is reported first.
        """
        case, context = self._session.case, self._session.context
        if case is None:
            return

        doing = tr("Predicting {case_id}", case_id=case.case_id)

        def refuse(error: Exception) -> None:
            self.ended.emit(tr("failed: {plain_text}", plain_text=plain_text(error)))
            self._notifier.fail(doing, error)
            self.failed.emit(error)

        self._jobs.start(
            "predict",
            doing,
            lambda: self._predict_case(case, context, segmenter, prompt, keeping),
            lambda answer: self._take_answer(answer, case, segmenter, prompt),
            failed=refuse,
            stopped=lambda: self.ended.emit(tr("stopped: nothing was changed")),
            # A newer run may have replaced this one.
            ended=lambda: self.running_changed.emit(self._jobs.is_running("predict")),
        )
        self.running_changed.emit(True)

    def keep(self, answer: Answer, keeping: Keeping) -> None:
        """Save an answer that was not saved because another prediction exists."""
        self._finish_again(answer, answer.prediction, answer.chosen, keeping, "Saving")

    def cancel(self) -> None:
        """Stop the running prediction."""
        self._jobs.stop("predict")

    def choose(self, candidate: Candidate) -> None:
        """Make another candidate the prediction, go to that candidate, and save the file again."""
        answer = self._answer
        if answer is not None and self._session.shows(answer.case):
            chosen = self._services.choose_candidate(answer.prediction, candidate)
            title = tr("Candidate {rank}", rank=candidate.rank)
            self._finish_again(answer, chosen, candidate.rank, Keeping(answer.kept), title)

    def map_uncertainty(self, kind: UncertaintyKind) -> None:
        """Show the uncertainty of the displayed prediction by the given measure."""
        answer = self._answer
        if answer is None or not self._session.shows(answer.case):
            return

        def show(uncertainty: Uncertainty) -> None:
            self._show_uncertainty(answer.case, answer.prediction, uncertainty)
            self.uncertainty_found.emit(uncertainty)

        self._jobs.start(
            "doubt",
            tr("Searching for uncertain regions"),
            lambda: self._services.predict.uncertainty_of(answer.prediction, kind),
            show,
            still=lambda: self._session.shows(answer.case),
        )

    # -------------------------------------------------------- in the worker thread

    def _predict_case(
        self,
        case: Case,
        context: CaseContext | None,
        segmenter: Segmenter,
        prompt: Prompt | None,
        keeping: Keeping | None,
    ) -> Answer | KeptPrediction:
        if context is not None and keeping is None:
            report_progress(0, 1, tr("Searching for an earlier prediction"))
            find_earlier = self._services.predict.kept
            older = find_earlier(context.workspace, segmenter.name, context.case_id)
            if older is not None:
                return older
        prediction = self._services.predict_case(case, segmenter, prompt)
        return self._finish_prediction(case, context, prediction, 1, keeping or Keeping())

    def _finish_prediction(
        self,
        case: Case,
        context: CaseContext | None,
        prediction: Prediction,
        chosen: int,
        keeping: Keeping,
    ) -> Answer:
        calls, not_saved, entry, older = self._services.predict, "", None, None
        kinds = calls.uncertainty_kinds(prediction)
        uncertainty = None
        if kinds:
            uncertainty = calls.uncertainty_of(prediction, kinds[0])
        buffer = prediction.mask.array.astype(np.uint8)
        place = self._services.centre_of_largest_part(buffer, case.grid)
        if context is not None:
            try:
                entry = calls.keep(
                    prediction, case, context.workspace, keeping.replaces, beside=keeping.beside
                )
            except SaveConflictError as error:
                not_saved, name = str(error), _made_by(prediction)
                older = calls.kept(context.workspace, name, context.case_id)
            except MamamiaError as error:
                not_saved = str(error)
        return Answer(
            case,
            context,
            prediction,
            chosen,
            buffer,
            place,
            not_saved,
            entry,
            older,
            uncertainty,
            kinds,
        )

    # ----------------------------------------------------------- in the GUI thread

    def _finish_again(
        self, answer: Answer, prediction: Prediction, chosen: int, keeping: Keeping, title: str
    ) -> None:
        self._jobs.start(
            "predict",
            title,
            lambda: self._finish_prediction(
                answer.case, answer.context, prediction, chosen, keeping
            ),
            self._show_answer,
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
            self._show_answer(found)
        elif self._session.shows(case):
            self.older_found.emit(OlderFound(found, segmenter, prompt))

    def _show_answer(self, answer: Answer) -> None:
        if answer.not_saved:
            self._notifier.warn_loudly(
                tr("The prediction is not saved: {not_saved}", not_saved=answer.not_saved)
            )
        elif answer.context is not None:
            opened = answer.context.opened
            self._session.set_row(opened, self._services.case_row(opened, answer.case.case_id))
        if not self._session.shows(answer.case):
            if answer.context is not None:
                where = answer.context.opened.data_set.name
                self._notifier.hint(
                    tr(
                        "Predicted {case_id} in {where}, which was open before.",
                        case_id=answer.case.case_id,
                        where=where,
                    )
                )
            return
        provenance = answer.prediction.mask.provenance
        is_new = self._scene.layer(Role.PREDICTION) is None
        self._scene.show_mask(tag_for(answer.case, Role.PREDICTION, provenance), answer.buffer)
        self._later.start([partial(self._take_up, answer)] if is_new else [])
        if not is_new:
            self._take_up(answer)

    def _take_up(self, answer: Answer) -> None:
        if not self._session.shows(answer.case):
            return
        before, self._answer = self._answer, answer
        if before is not None and before.chosen > 1 and answer.chosen == 1:
            self._notifier.hint(tr("Candidate 1 is now the prediction."))
        elif answer.chosen > 1 and not answer.not_saved:
            self._notifier.hint(
                tr(
                    "Candidate {rank} is now the prediction. Click candidate 1 to go back.",
                    rank=answer.chosen,
                )
            )
        provenance = answer.prediction.mask.provenance
        name = answer.kept.name if answer.kept else _made_by(answer.prediction)
        file = answer.kept.file if answer.kept else None
        self._session.set_mask(
            SessionMask(Role.PREDICTION, name, answer.buffer, provenance=provenance, file=file)
        )
        self._show_uncertainty(answer.case, answer.prediction, answer.uncertainty)
        if answer.place is not None:
            self._scene.view.go_to(answer.place, centre=False)
        self.answered.emit(answer)

    def _show_uncertainty(
        self, case: Case, prediction: Prediction, uncertainty: Uncertainty | None
    ) -> None:
        if uncertainty is None:
            self._scene.overlays.hide_uncertainty()
            return
        tag = tag_for(case, Role.DOUBT, prediction.mask.provenance)
        self._scene.overlays.show_uncertainty(tag, uncertainty.amount, *_SHOWN[uncertainty.kind])


def _made_by(prediction: Prediction) -> str:
    provenance = prediction.mask.provenance
    return provenance.name if provenance else ""


_ALL_LANE = "predict all"
_MOST_SHOWN = 5


class PredictAll(WindowPart):
    """A component that runs the selected model on all cases without a prediction by this model."""

    def __init__(self, context: WindowContext, page: PredictPage, models: PredictModels) -> None:
        super().__init__(context)
        self._page = page
        self._models = models
        page.all_wanted.connect(self.start)

    def start(self) -> None:
        """Predict all cases that have no prediction by the selected model."""
        opened = self._session.opened
        if opened is None:
            self._notifier.hint(tr("Predict all needs a data set: open its folder first."))
            return
        try:
            segmenter = self._models.segmenter()
            if self._models.problem():
                self._notifier.hint(self._models.problem())
                return
            self._start_job(opened, segmenter)
        except MamamiaError as error:
            self._notifier.fail(tr("Predicting the data set"), error)

    def cancel(self) -> None:
        """Stop the run; finished predictions are kept."""
        self._jobs.stop(_ALL_LANE)

    def _start_job(self, opened: OpenDataSet, segmenter: Segmenter) -> None:
        page, doing = self._page, tr("Predicting {name}", name=opened.data_set.name)

        def show(answer: tuple[PredictSummary, tuple[CaseRow, ...]]) -> None:
            summary, rows = answer
            page.show_result(_describe_summary(summary), (), 0)
            for row in rows:
                self._session.set_row(opened, row)

        def refuse(error: Exception) -> None:
            page.show_result(tr("failed: {plain_text}", plain_text=plain_text(error)), (), 0)
            self._notifier.fail(doing, error)

        self._jobs.start(
            _ALL_LANE,
            doing,
            lambda: self._predict_waiting(opened, segmenter),
            show,
            failed=refuse,
            stopped=lambda: self._show_stop(opened),
            ended=lambda: page.set_running(False),
            in_turn_of=_ALL_LANE,
        )
        self._page.set_running(True)

    def _show_stop(self, opened: OpenDataSet) -> None:
        self._page.show_result(tr("stopped: finished predictions are kept"), (), 0)

        def show(rows: list[CaseRow]) -> None:
            for row in rows:
                self._session.set_row(opened, row)

        read = self._services.case_row
        self._jobs.start(
            "predicted rows",
            tr("Reading existing predictions"),
            lambda: [read(opened, files.case_id) for files in opened.data_set.cases],
            show,
            still=lambda: self._session.opened is opened,
            shown=False,
            in_turn_of=_ALL_LANE,
        )

    # ------------------------------------------------------------ in the worker thread

    def _predict_waiting(
        self, opened: OpenDataSet, segmenter: Segmenter
    ) -> tuple[PredictSummary, tuple[CaseRow, ...]]:
        out = opened.workspace.predictions / segmenter.name
        there = opened.workspace.case_ids("prediction", segmenter.name)
        waiting = [files.case_id for files in opened.data_set.cases if files.case_id not in there]
        if not waiting:
            return PredictSummary((), tuple(sorted(there)), ()), ()
        summary = self._services.predict_data_set(opened, segmenter, out, waiting, Existing.ADD)
        saved_ids = {saved.case_id for saved in summary.saved}
        rows = [
            self._services.case_row(opened, case_id) for case_id in waiting if case_id in saved_ids
        ]
        return summary, tuple(rows)


def _describe_summary(summary: PredictSummary) -> str:
    lines = [tr("Cases predicted and saved: {n_saved}.", n_saved=len(summary.saved))]
    if not summary.saved and summary.skipped:
        lines = [tr("Every case already has a prediction by this model.")]
    if summary.failures:
        lines.append(tr("{n_failures} failed:", n_failures=len(summary.failures)))
    lines.extend(f"{failed.case_id}: {failed.reason}" for failed in summary.failures[:_MOST_SHOWN])
    return "\n".join(lines)
