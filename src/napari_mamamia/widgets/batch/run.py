"""A batch run of the window: a job that scores cases and prepares the results for display."""

import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from qtpy.QtGui import QImage

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Progress, report_progress
from napari_mamamia.core.records import CaseScore
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.scoring.case.profiles import UnusableReason
from napari_mamamia.scoring.cohort.policy import WITHOUT_REFERENCE, unusable_reason
from napari_mamamia.scoring.cohort.results import ModelComparison
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.score.case_table import CaseTable
from napari_mamamia.services.score.cohort_page import cohort_heads, cohort_tables, comparison_page
from napari_mamamia.services.score.pace import Pace
from napari_mamamia.services.score.report import FIGURES, REPORT
from napari_mamamia.services.score.score import (
    Pairs,
    ScoreSummary,
    has_references_as_predictions,
)
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.services.score.text import cohort_lines
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.batch.page import BatchRequest
from napari_mamamia.widgets.batch.results_cohort import Figure, page_of

# Progress of a batch over all its models, as a fraction for the bar and as text.

_COUNT: Final = re.compile(r"^[\d,]+ of [\d,]+ cases")
"""Pattern of the progress text of `services.batch.batch` while cases are counted."""


class RunPace:
    """Total progress of models that are scored one after another, from their case counts.

    Examples
    --------
    >>> pace = RunPace([4, 4])
    >>> pace.follow(Progress(2, 4, "2 of 4 cases"), 10.0)
    (0.25, 'model 1 of 2 · 2 of 4 cases')
    >>> pace.follow(Progress(4, 4, "4 of 4 cases"), 11.0)
    (0.5, 'model 1 of 2 · 4 of 4 cases')
    >>> pace.follow(Progress(0, 4, "0 of 4 cases"), 11.0)
    (0.5, 'model 2 of 2 · 0 of 4 cases')
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = tuple(counts)
        self._at = 0
        self._done = 0
        self._share = 0.0
        self._pace = Pace(self._counts[0] if counts else 0)

    def follow(self, progress: Progress, now_s: float) -> tuple[float, str]:
        """Return the fraction completed (0 to 1, never decreasing) and a status message.

        `now_s` is the current time in s from any clock.
        """
        if _COUNT.match(progress.text):
            self._count_progress(progress)
        line = self._pace.line(progress, now_s)
        several = len(self._counts) > 1
        return (
            self._share,
            tr(
                "model {at} of {n__counts} · {line}",
                at=self._at + 1,
                n__counts=len(self._counts),
                line=line,
            )
            * several
            or line,
        )

    def _count_progress(self, progress: Progress) -> None:
        if progress.done < self._done and self._at + 1 < len(self._counts):
            self._at += 1
            self._pace = Pace(self._counts[self._at])
        self._done = progress.done
        share = (self._at + progress.fraction) / max(len(self._counts), 1)
        self._share = max(self._share, share)


_POLL_S: Final = 0.1
_STATES: Final = {
    UnusableReason.EMPTY: tr("empty"),
    UnusableReason.MISSING: tr("missing"),
    UnusableReason.UNREADABLE: tr("unreadable"),
    UnusableReason.OTHER_GRID: tr("on another grid"),
    UnusableReason.NOT_FINITE: tr("not finite"),
    UnusableReason.TOO_MANY_LABELS: tr("with too many labels"),
    UnusableReason.NOT_SCORED: tr("not scored"),
}
_FIGURE_WIDTH: Final = 1600
"""Width in pixels of a stored figure, which exceeds the width of the panel."""


def describe_unusable(row: CaseScore) -> str:
    """Return why a case has no usable mask as a short text, or "" if it has one."""
    if row.status in WITHOUT_REFERENCE:
        return tr("without a reference")
    reason = unusable_reason(row)
    return "" if reason is None else _STATES[reason]


@dataclass(frozen=True, slots=True, eq=False)
class ModelAnswer:
    """The results of one model: scored files, case table, summary and figures.

    `images` are the cases of the open data set, for failure types that need images.
    """

    summary: ScoreSummary
    pairs: Pairs
    cases: CaseTable
    settings: ScoreSettings
    lines: tuple[str, ...]
    page: str
    figures: tuple[Figure, ...]
    images: tuple[CaseFiles, ...] = ()

    @property
    def name(self) -> str:
        """The model's name."""
        return self.summary.model.name

    @property
    def title(self) -> str:
        """A line with the model, the profile and the number of cases by usability."""
        model = self.summary.model
        states = Counter(filter(None, map(describe_unusable, model.rows)))
        return tr_n(
            "{name} · {defined_by} · {n} case, {n_usable} with a usable mask{others}",
            "{name} · {defined_by} · {n} cases, {n_usable} with a usable mask{others}",
            model.n_cases,
            name=model.name,
            defined_by=model.defined_by,
            n_usable=model.n_cases - states.total(),
            others="".join(f", {n} {state}" for state, n in sorted(states.items())),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BatchAnswer:
    """The results of a finished run: its models, their comparison and an optional report.

    `opened` is the data set that was open at the start, with the cases of the tables.
    """

    models: tuple[ModelAnswer, ...]
    comparison: ModelComparison | None
    folder: Path
    report: Path | None
    opened: OpenDataSet | None = None

    @property
    def failures(self) -> tuple[str, ...]:
        """The cases that were not scored normally, each with its model and a reason."""
        texts = []
        for answer in self.models:
            states = {row.case_id: describe_unusable(row) for row in answer.summary.model.rows}
            texts += [
                tr(
                    "{case_id} of {name} ({why})",
                    case_id=failure.case_id,
                    name=answer.name,
                    why=states.get(failure.case_id) or failure.reason,
                )
                for failure in answer.summary.model.failures
            ]
        return tuple(texts)

    @property
    def index_to_show(self) -> int:
        """The index of the first model with such a case, or 0."""
        failed = [at for at, answer in enumerate(self.models) if answer.summary.model.failures]
        return failed[0] if failed else 0


class BatchRun:
    """A run in a worker thread; `pace` follows its progress.

    `before` is the previous run, for which this run waits, because a cancelled run may still be
    closing its files.
    """

    def __init__(
        self,
        wanted: BatchRequest,
        services: Services,
        before: "BatchRun | None" = None,
        opened: OpenDataSet | None = None,
    ) -> None:
        self._wanted = wanted
        self._services = services
        self._before = before
        self._opened = opened
        self._is_over = threading.Event()
        self._settings = wanted.settings
        self.pace = RunPace(())

    def work(self) -> BatchAnswer:
        """Wait for the previous run, score the models, and prepare the results for display."""
        try:
            while self._before is not None and not self._before.wait(_POLL_S):
                report_progress(0, 1, tr("Waiting for the previous run"))
            self._before = None
            return self._score_models()
        finally:
            self._is_over.set()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the end of the run; return False if it still runs."""
        return self._is_over.wait(seconds)

    # -------------------------------------------------------------------- inner

    def _score_models(self) -> BatchAnswer:
        request, services = self._wanted, self._services
        cases = None
        if request.case_list is not None:
            cases = services.read_case_list(request.case_list)
        settings = self._settings = replace(request.settings, cases=cases)
        report_progress(0, 1, tr("Searching for the masks"))
        pairs = [
            services.find_pairs(request.reference, model.folder, cases) for model in request.models
        ]
        for model, own_pairs in zip(request.models, pairs, strict=True):
            if has_references_as_predictions(own_pairs):
                raise FormatError(
                    f"expected the masks of a model, but the prediction folder of {model.name} is "
                    "the reference folder: choose the folder of the model's masks"
                )
        self.pace = RunPace([len(entry) for entry in pairs])
        comparison: ModelComparison | None = None
        if len(request.models) == 1:
            only = request.models[0]
            summary = services.score_folders(
                request.reference,
                only.folder,
                request.out,
                settings,
                name=only.name,
                place=request.place,
                existing=request.existing,
            )
            summaries: tuple[ScoreSummary, ...] = (summary,)
        else:
            several = services.score_models(
                request.reference,
                request.models,
                request.out,
                settings,
                place=request.place,
                existing=request.existing,
            )
            summaries, comparison = several.models, several.comparison
        models = []
        for entry, own_pairs in zip(summaries, pairs, strict=True):
            models.append(self._prepare_answer(entry, own_pairs, comparison, summaries))
        report = request.out / REPORT
        found_report = report if report.is_file() else None
        return BatchAnswer(tuple(models), comparison, request.out, found_report, self._opened)

    def _prepare_answer(
        self,
        summary: ScoreSummary,
        pairs: Pairs,
        comparison: ModelComparison | None,
        found: tuple[ScoreSummary, ...],
    ) -> ModelAnswer:
        model = summary.model
        cases = self._services.case_table(model, pairs)
        if summary.looks:
            cases = self._services.with_failures(cases, summary.looks)
        report_progress(1, 1, tr("Preparing the numbers"))
        tables = cohort_tables(model)
        if comparison is not None:
            scored = [answer.model for answer in found]
            tables = (*comparison_page(comparison, scored), *tables)
        page = page_of(cohort_heads(model), tables)
        figures = []
        folder = self._wanted.out / FIGURES
        for saved in self._services.saved_figures(folder, model.name if comparison else ""):
            # QImage is used because Qt does not allow QPixmap in worker threads.
            image = QImage.fromData(saved.png)
            if not image.isNull():
                wide = min(image.width(), _FIGURE_WIDTH)
                figures.append(Figure(saved.title, image.scaledToWidth(wide)))
            report_progress(1, 1, tr("Reading the figures"))
        lines = (
            *cohort_lines(model),
            *(tr("  warning: {words}", words=text) for text in summary.warnings),
        )
        images = () if self._opened is None else self._opened.data_set.cases
        return ModelAnswer(
            summary, pairs, cases, self._settings, lines, page, tuple(figures), images
        )
