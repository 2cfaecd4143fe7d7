"""Page Batch at work: a scoring run, its state, and what it found."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.records import CaseScore
from napari_mamamia.services.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.score import Pairs, ScoreSummary
from napari_mamamia.services.score_pace import Pace
from napari_mamamia.services.score_settings import ScoreSettings
from napari_mamamia.services.score_text import cohort_lines
from napari_mamamia.widgets.batch_page import BatchDefaults, BatchPage, BatchRequest
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.opening import Opening
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session

__all__ = ["BatchAnswer", "BatchFlow"]

_LANE: Final = "batch"


@dataclass(frozen=True, slots=True, eq=False)
class BatchAnswer:
    """A run that finished: what it found, the files it scored, the report where there is one."""

    summary: ScoreSummary
    pairs: Pairs
    report: Path | None
    lines: tuple[str, ...]

    @property
    def rows(self) -> tuple[CaseScore, ...]:
        """The cases, with reasons that name files without their folders."""
        return tuple(replace(row, reason=self._without_folders(row)) for row in self.summary.rows)

    def _without_folders(self, row: CaseScore) -> str:
        reason = row.reason
        for path in self.pairs.get(row.case_id, ()):
            if path is not None:
                for written in (str(path), str(path.absolute())):
                    reason = reason.replace(written, path.name)
        return reason

    @property
    def title(self) -> str:
        """One line: model, profile and counts."""
        model = self.summary.model
        left_out = model.n_cases - model.n_scored
        return (
            f"{model.name} · profile {model.profile} · {model.n_cases} case(s), "
            f"{model.n_scored} scored, {left_out} without a score"
        )


class BatchFlow(QObject):
    """Joins the page, the session and the scoring job; `finished` carries a `BatchAnswer`."""

    finished = Signal(object)

    def __init__(
        self,
        page: BatchPage,
        session: Session,
        opening: Opening,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._pace = Pace(0)
        self._rows: dict[str, CaseRow] = {}
        page.start_wanted.connect(self.start)
        page.cancel_wanted.connect(lambda: jobs.cancel(_LANE))
        opening.listed.connect(self._take_rows)
        session.row_changed.connect(self._take_row)

    def start(self, wanted: BatchRequest) -> None:
        """Score what the page asks for; an older run is stopped."""

        def done(outcome: Outcome[BatchAnswer]) -> None:
            self._page.set_running(False)
            if isinstance(outcome, Finished):
                self._show(outcome.result)
            elif isinstance(outcome, Failed):
                self._show_failure(outcome.error)
            else:
                self._page.say(
                    "Cancelled. Cases that were done are kept: start again to go on.", "warning"
                )

        self._pace = Pace(0)
        self._page.show_end("", None, None)
        self._page.set_running(True)
        self._jobs.start(
            _LANE,
            "Batch scoring",
            lambda: self._work(wanted),
            done,
            on_progress=self._show_progress,
        )

    # -------------------------------------------------------- in the worker thread

    def _work(self, wanted: BatchRequest) -> Job[BatchAnswer]:
        yield Progress(0, 1, "Looking for the masks")
        pairs = self._services.find_pairs(wanted.reference, wanted.prediction)
        self._pace = Pace(len(pairs))
        settings = ScoreSettings(profile=wanted.profile, clinical=wanted.clinical)
        summary = yield from self._services.score_folders(
            wanted.reference, wanted.prediction, wanted.out, settings, existing=wanted.existing
        )
        report = summary.report if summary.report.is_file() else None
        return BatchAnswer(summary, pairs, report, cohort_lines(summary.model))

    # ----------------------------------------------------------- in the GUI thread

    def _show_progress(self, progress: Progress) -> None:
        line = self._pace.line(progress, time.monotonic())
        self._page.show_progress(progress.fraction, line)

    def _show(self, answer: BatchAnswer) -> None:
        failures = answer.summary.model.failures
        if failures:
            self._page.say(
                f"Finished; {len(failures)} case(s) need a look: see the table below the image.",
                "warning",
            )
        else:
            self._page.say("Finished: every case was scored.")
        numbers = _means(answer)
        self._page.show_end(f"{answer.title}\n{numbers}", answer.summary.folder, answer.report)
        self.finished.emit(answer)

    def _show_failure(self, error: Exception) -> None:
        if isinstance(error, SaveConflictError):
            self._page.say("Nothing was written.")
            self._page.show_taken(True)
            return
        self._page.say("Failed: see the message above. Nothing was lost.", "error")
        self._notifier.fail("Batch scoring", error)

    def _take_rows(self, rows: tuple[CaseRow, ...]) -> None:
        self._rows = {row.case_id: row for row in rows}
        opened = self._session.opened
        if opened is None:
            return
        references = [case.reference for case in opened.data_set.cases if case.reference]
        self._page.show_defaults(
            BatchDefaults(
                references[0].parent if references else None,
                _folders(opened, tuple(self._rows.values())),
                opened.data_set.clinical,
                opened.workspace.scores,
            )
        )

    def _take_row(self, row: CaseRow) -> None:
        self._rows[row.case_id] = row
        if self._session.opened is not None:
            rows = tuple(self._rows.values())
            self._page.show_predictions(_folders(self._session.opened, rows))


def _means(answer: BatchAnswer) -> str:
    """Return the lines that answer "how good"; the others are in the panel's tab Cohort."""
    wanted = ("mean DSC", "mean NormHD", "fairness  ", "ranking score")
    found = [line.strip() for line in answer.lines[1:] if line.strip().startswith(wanted)]
    return "\n".join(" ".join(line.split()) for line in found)


def _folders(opened: OpenDataSet, rows: tuple[CaseRow, ...]) -> tuple[tuple[str, Path], ...]:
    """Return the folders of masks in the workspace by title: predictions, then refined masks."""
    models = sorted({name for row in rows for name in row.predictions})
    readers = sorted({name for row in rows for name in row.refined})
    if not rows:
        return ()
    any_case, workspace = rows[0].case_id, opened.workspace
    return (
        *((f"prediction {name}", workspace.prediction(name, any_case).parent) for name in models),
        *((f"refined by {name}", workspace.refined(name, any_case).parent) for name in readers),
    )
