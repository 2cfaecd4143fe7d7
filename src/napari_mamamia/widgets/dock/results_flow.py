"""Controller of the bottom panel with the tables of a run, tags, the log and curves."""

from collections.abc import Callable
from typing import Final

from napari_mamamia.core.texts import tr
from napari_mamamia.services.score.case_table import CaseTable
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.batch.flow import BatchFlow
from napari_mamamia.widgets.batch.results_review import ResultsReview
from napari_mamamia.widgets.batch.run import BatchAnswer, ModelAnswer
from napari_mamamia.widgets.dock.results_panel import ResultsPanel
from napari_mamamia.widgets.findings.flow import FindingsFlow
from napari_mamamia.widgets.findings.page import FindingsPage
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.curves_flow import CurvesFlow
from napari_mamamia.widgets.kinetics.flow import KineticsFlow, MotionFlow
from napari_mamamia.widgets.kinetics.ftv_live import FtvLive
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.refine.mouse_tools import MouseTools
from napari_mamamia.widgets.score.tagging import Tagging
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_CONTRAST: Final = "contrast"
_TAGS: Final = "results_tags"
_HUNG_SHARE: Final = 0.34
"""Fraction of the window's height for the curve that is shown with a hanging step."""


class ResultsFlow(WindowPart):
    """A component that displays the results of a finished run, one model at a time.

    Only the newest state of each model's table is kept. The failure type "low contrast", which
    needs the images, is added after its computation, and tags are updated after every change.
    """

    def __init__(
        self,
        context: WindowContext,
        panel: ResultsPanel,
        bottom: BottomDock,
        review: ResultsReview,
        tagging: Tagging,
    ) -> None:
        super().__init__(context)
        self._panel = panel
        self._bottom = bottom
        self._review = review
        self._tagging = tagging
        self._answer: BatchAnswer | None = None
        self._tables: list[CaseTable] = []
        self._looked_at: set[int] = set()
        self._at = 0
        panel.fold_wanted.connect(bottom.fold)
        panel.cases.model_chosen.connect(self._turn_to)
        panel.cases.tag_wanted.connect(self._tag_case)
        tagging.changed.connect(self._add_tags)

    def follow(self, batch: BatchFlow) -> None:
        """Show the results of the Batch page, whose report can be opened from the Cohort tab."""
        batch.started.connect(self._bottom.prepare)
        batch.finished.connect(self._show_answer)
        batch.page.table_wanted.connect(self.show_table)
        batch.page.log_wanted.connect(self.show_log)
        self._panel.cohort.report_wanted.connect(batch.page.show_report)

    def open_case(self, case_id: str) -> None:
        """Open a case of the table at its largest error, with errors in colour."""
        self._review.open_case(case_id)

    def show_table(self) -> None:
        """Show the scored cases below the image."""
        self._panel.show_cases()
        self._bottom.show()

    def show_log(self) -> None:
        """Show the log below the image."""
        self._panel.show_log()
        self._bottom.show()

    # -------------------------------------------------------------------- inner

    def _show_answer(self, answer: BatchAnswer) -> None:
        self._answer = answer
        self._tables = [model.cases for model in answer.models]
        self._looked_at = set()
        at = answer.index_to_show
        self._panel.cases.show_models([model.name for model in answer.models], at)
        self._turn_to(at)
        self._bottom.show()
        if answer.comparison is None:
            self._panel.show_cases()
        else:
            self._panel.show_cohort()
        self._panel.scored.emit()

    def _turn_to(self, at: int) -> None:
        if self._answer is None or not 0 <= at < len(self._answer.models):
            return
        self._at = at
        model = self._answer.models[at]
        self._panel.cases.show_table(self._tables[at], model.title)
        self._panel.cohort.show_page(model.page, has_report=self._answer.report is not None)
        self._panel.cohort.show_figures(model.figures)
        self._review.show_model(model, self._answer.opened)
        self._add_tags()
        if model.images and at not in self._looked_at:
            self._look_for_contrast(at, model)

    def _look_for_contrast(self, at: int, model: ModelAnswer) -> None:
        answer, services = self._answer, self._services
        scores, pairs, settings = model.summary.model, model.pairs, model.settings

        def work() -> CaseTable:
            looks = services.look_for_contrast(scores.rows, pairs, settings, model.images)
            # Read here rather than earlier, because tags may have been added while images were
            # read.
            return services.with_failures(self._tables[at], looks)

        def take(table: CaseTable) -> None:
            self._looked_at.add(at)
            self._put_table(at, table)
            self._add_tags()

        self._jobs.start(
            _CONTRAST,
            tr("Measuring the image contrast"),
            work,
            take,
            still=lambda: self._answer is answer,
        )

    def _add_tags(self) -> None:
        if self._answer is None:
            return
        answer, index, table = self._answer, self._at, self._tables[self._at]
        tags = self._tagging.all_of(answer.opened)
        # After the last tag is removed, the table still has its tag column and is created again.
        if not tags and table.facet("tag") is None:
            return

        self._jobs.start(
            _TAGS,
            tr("Adding the tags"),
            lambda: self._services.with_tags(table, tags),
            lambda tagged: self._put_table(index, tagged),
            still=lambda: self._answer is answer,
            shown=False,
        )

    def _tag_case(self, case_id: str, tag: str, on: bool) -> None:
        opened = None if self._answer is None else self._answer.opened
        self._tagging.tag(case_id, tag, on, opened)

    def _put_table(self, at: int, table: CaseTable) -> None:
        self._tables[at] = table
        if at == self._at:
            self._panel.cases.update_table(table)


class KineticsParts(WindowPart):
    """The controllers for Kinetics and Findings, which are deleted together.

    Attributes
    ----------
    case, map, ftv_box, ftv_live, curves, flow, motion, findings
        The times of the case; the map; the FTV box and its numbers; the curve at the pointer; the
        controllers of the Kinetics page, its Motion section and the Findings page.
    """

    def __init__(
        self,
        context: WindowContext,
        page: KineticsPage,
        findings_page: FindingsPage,
        with_reader: Callable[[Callable[[], None]], None],
        results: ResultsPanel,
        bottom: BottomDock,
        tools: MouseTools,
    ) -> None:
        super().__init__(context)
        self._results = results
        self._bottom = bottom
        self._is_hung = False
        self.case = KineticCase(context)
        self.map = KineticMapControl(context, self.case)
        self.ftv_box = tools.ftv_box
        self.ftv_live = FtvLive(context, self.case, self.ftv_box)
        self.curves = CurvesFlow(context, results.curves, bottom, self.case, tools.aim)
        self.flow = KineticsFlow(
            context, page, self.case, self.map, self.ftv_live, self.curves, self.show_curves
        )
        self.motion = MotionFlow(context, page.motion, self.case)
        self.findings = FindingsFlow(context, findings_page, tools.landmarks, with_reader)

    def want(self, page: str) -> None:
        """Measure only the data that the displayed page needs."""
        self.flow.want(page == "Kinetics")
        self.findings.want(page)

    def show_curves(self) -> None:
        """Show the Curves tab with the curve at the pointer."""
        self._results.show_curves()
        self.curves.show()

    def hang_curves(self, shown: bool) -> None:
        """Show the curve for a hanging step, or restore the previous tab."""
        if shown and not self._bottom.is_shown:
            self._is_hung = True
            self.show_curves()
            self._bottom.take_at_most(_HUNG_SHARE)
        elif not shown and self._is_hung:
            self._is_hung = False
            self._bottom.fold()
