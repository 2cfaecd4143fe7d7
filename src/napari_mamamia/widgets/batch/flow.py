"""Controller of the Batch page: the scoring run, its state and its results."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.scoring.cohort.policy import counted_lines, not_for_ranking
from napari_mamamia.scoring.cohort.results import n_text
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.score.clinical_table import ClinicalSummary
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.batch.page import BatchDefaults, BatchPage, BatchRequest
from napari_mamamia.widgets.batch.run import BatchAnswer, BatchRun
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "batch"
_TABLE_LANE: Final = "batch table"
_SHOWN: Final = ("mean DSC", "mean NormHD", "fairness  ", "ranking score")
"""Prefixes of the main result lines; other lines are in the Cohort tab of the panel."""


class BatchFlow(WindowPart):
    """The controller of the Batch page; `finished` carries a `BatchAnswer`."""

    started = Signal()
    finished = Signal(object)

    def __init__(self, context: WindowContext, page: BatchPage) -> None:
        super().__init__(context)
        self.page = page
        self._run: BatchRun | None = None
        self._stopped: BatchRequest | None = None
        page.start_wanted.connect(self.start)
        page.table_changed.connect(self.look_at_table)
        page.cancel_wanted.connect(lambda: self._jobs.stop(_LANE))
        page.options.show_cluster(self._services.has_cluster())
        self._session.rows_changed.connect(self._show_data_set)
        self._session.row_changed.connect(self._show_predictions)
        self._show_data_set()

    def start(self, request: BatchRequest) -> None:
        """Start scoring as requested on the page; a cancelled run of this window is continued."""
        if self._stopped == request and request.existing is Existing.REFUSE:
            request = replace(request, existing=Existing.RESUME)
        run = BatchRun(request, self._services, self._run, self._session.opened)

        self._run = run
        self.page.show_end("", None, None)
        self.page.set_running(True)
        self.started.emit()
        self._jobs.start(
            _LANE,
            "Batch scoring",
            run.work,
            self._show_answer,
            failed=self._show_failure,
            stopped=lambda: self._show_stop(request),
            ended=lambda: self.page.set_running(False),
            on_progress=self._show_progress,
        )

    def look_at_table(self) -> None:
        """Show the coverage of the clinical table in the form; do nothing without a file."""
        page, table = self.page, self.page.table
        if table is None or not table.is_file():
            self._jobs.cancel(_TABLE_LANE)
            return

        clinical = page.clinical_summary
        columns = clinical.columns
        self._jobs.start(
            _TABLE_LANE,
            tr("Reading the clinical table"),
            lambda: self._services.look_at_clinical(table, columns),
            clinical.show_look,
            failed=lambda error: clinical.show_look(ClinicalSummary("", plain_text(error))),
            shown=False,
        )

    # -------------------------------------------------------------------- inner

    def _show_progress(self, progress: Progress) -> None:
        if self._run is not None:
            self.page.show_progress(*self._run.pace.follow(progress, time.monotonic()))

    def _show_answer(self, answer: BatchAnswer) -> None:
        self._stopped = None
        failures = answer.failures
        if failures:
            self.page.say(
                tr_n(
                    "Finished; {n} case needs attention: {names}.",
                    "Finished; {n} cases need attention: {names}.",
                    len(failures),
                    names=name_some(failures, 3),
                ),
                "warning",
            )
        else:
            self.page.say(tr("Finished: every case was scored."))
        self.page.show_end(_describe_answer(answer), answer.folder, answer.report)
        self.finished.emit(answer)

    def _show_stop(self, wanted: BatchRequest) -> None:
        self._stopped = replace(wanted, existing=Existing.REFUSE)
        self.page.say(
            tr("Cancelled. Finished cases are kept; Start continues the run."),
            "warning",
        )

    def _show_failure(self, error: Exception) -> None:
        if isinstance(error, SaveConflictError):
            # The question above offers the remedies, because the message names command-line
            # options.
            reason = str(error).partition(": ")[0]
            self.page.say(tr("Nothing was written: {error}.", error=reason))
            self.page.show_taken(True)
            return
        self.page.say(tr("Failed: {plain_text}", plain_text=plain_text(error)), "error")
        self._notifier.fail("Batch scoring", error)

    def _show_data_set(self) -> None:
        opened = self._session.opened
        if opened is None:
            return
        references = [case.reference for case in opened.data_set.cases if case.reference]
        self.page.show_defaults(
            BatchDefaults(
                references[0].parent if references else None,
                _list_folders(opened, tuple(self._session.rows.values())),
                opened.data_set.clinical,
                opened.workspace.scores,
            )
        )

    def _show_predictions(self, _changed: object = None) -> None:
        if self._session.opened is not None:
            rows = tuple(self._session.rows.values())
            self.page.show_predictions(_list_folders(self._session.opened, rows))


def _describe_answer(answer: BatchAnswer) -> str:
    first = answer.models[0]
    if answer.comparison is None:
        lines = [line.strip() for line in first.lines[1:] if line.strip().startswith(_SHOWN)]
        result = first.summary.model.segmentation
        shown: list[str] = []
        if result is not None:
            shown += [text for text in (not_for_ranking(result.counted),) if text]
            shown += counted_lines(result.counted)
        return "\n".join([*shown, first.title, *(" ".join(line.split()) for line in lines)])
    # nan differs from itself, so models without a rank come last.
    ordered = sorted(answer.comparison.ranking, key=lambda m: (m.rank != m.rank, m.rank))
    lines = [
        tr(
            "{n_models} models · profile {profile}",
            n_models=len(answer.models),
            profile=answer.comparison.profile,
        )
    ]
    for model in ordered:
        rank = "–" if model.rank != model.rank else f"{model.rank:.0f}"
        score = "–" if model.ranking_score != model.ranking_score else f"{model.ranking_score:.3f}"
        lines.append(
            tr(
                "{rank}. {name}: ranking score {score}, n {n_text}",
                rank=rank,
                name=model.name,
                score=score,
                n_text=n_text(model),
            )
        )
    return "\n".join(
        [
            *lines,
            tr("The Cohort tab below the image shows intervals and the ranks at each weight."),
        ]
    )


def _list_folders(opened: OpenDataSet, rows: tuple[CaseRow, ...]) -> tuple[tuple[str, Path], ...]:
    models = sorted({name for row in rows for name in row.predictions})
    readers = sorted({name for row in rows for name in row.refined})
    if not rows:
        return ()
    any_case, workspace = rows[0].case_id, opened.workspace
    return (
        *(
            (tr("prediction {name}", name=name), workspace.prediction(name, any_case).parent)
            for name in models
        ),
        *(
            (tr("refined by {name}", name=name), workspace.refined(name, any_case).parent)
            for name in readers
        ),
    )
