"""Predicting every case of the data set from the page Predict."""

from qtpy.QtCore import QObject

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.segmentation.model.segmenter import Segmenter
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.predict.cases import PredictSummary
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.predict.models import PredictModels
from napari_mamamia.widgets.predict.page import PredictPage

_LANE = "predict all"
_MOST_SHOWN = 5


class PredictAll(QObject):
    """Runs the chosen model over the cases that it has not predicted yet."""

    def __init__(
        self,
        page: PredictPage,
        session: Session,
        models: PredictModels,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._models = models
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        page.all_wanted.connect(self.start)

    def start(self) -> None:
        """Predict all cases without a prediction of the chosen model."""
        opened = self._session.opened
        if opened is None:
            self._notifier.hint("Predict all works on a data set: open its folder first.")
            return
        try:
            segmenter = self._models.segmenter()
            if self._models.problem():
                self._notifier.hint(self._models.problem())
                return
            self._run(opened, segmenter)
        except MamamiaError as error:
            self._notifier.fail("Predicting the data set", error)

    def cancel(self) -> None:
        """Stop; what was predicted is kept."""
        if self._jobs.is_running(_LANE):
            self._jobs.cancel(_LANE)

    def _run(self, opened: OpenDataSet, segmenter: Segmenter) -> None:
        def done(outcome: Outcome[tuple[PredictSummary, tuple[CaseRow, ...]]]) -> None:
            self._page.set_running(False)
            if isinstance(outcome, Finished):
                summary, rows = outcome.result
                self._page.show_result(_said(summary), (), 0)
                for row in rows:
                    self._session.set_row(opened, row)
            elif isinstance(outcome, Failed):
                self._page.show_result(f"failed: {outcome.error}", (), 0)
                self._notifier.fail("Predicting the data set", outcome.error)
            else:
                self._page.show_result("stopped: what was finished is kept", (), 0)

        title = f"Predicting {opened.data_set.name}"
        self._jobs.start(_LANE, title, lambda: self._work(opened, segmenter), done)
        self._page.set_running(True)

    # ------------------------------------------------------------ in the worker thread

    def _work(
        self, opened: OpenDataSet, segmenter: Segmenter
    ) -> tuple[PredictSummary, tuple[CaseRow, ...]]:
        out = opened.workspace.predictions / segmenter.name
        there = opened.workspace.case_ids("prediction", segmenter.name)
        waiting = [files.case_id for files in opened.data_set.cases if files.case_id not in there]
        if not waiting:
            return PredictSummary((), tuple(sorted(there)), ()), ()
        summary = self._services.predict_data_set(opened, segmenter, out, waiting, Existing.ADD)
        made = {saved.case_id for saved in summary.saved}
        rows = [self._services.case_row(opened, case_id) for case_id in waiting if case_id in made]
        return summary, tuple(rows)


def _said(summary: PredictSummary) -> str:
    lines = [f"{len(summary.saved)} case(s) predicted and saved."]
    if not summary.saved and summary.skipped:
        lines = ["Every case has a prediction of this model already."]
    if summary.failures:
        lines.append(f"{len(summary.failures)} failed:")
    lines.extend(f"{failed.case_id}: {failed.reason}" for failed in summary.failures[:_MOST_SHOWN])
    return "\n".join(lines)
