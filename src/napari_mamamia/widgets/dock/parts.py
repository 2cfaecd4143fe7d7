"""What the dock is made of: the parts of one viewer's window, made in the order they need."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from qtpy.QtWidgets import QWidget

from napari_mamamia.features.challenge.widgets.flow import LeaderboardFlow
from napari_mamamia.features.review.widgets.flow import ReviewFlow
from napari_mamamia.features.review.widgets.page import ReviewPage
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.base.event_log import EventLog
from napari_mamamia.widgets.base.event_loop import IdleCollection
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.batch.flow import BatchFlow
from napari_mamamia.widgets.batch.page import BatchPage
from napari_mamamia.widgets.batch.results_review import ResultsReview
from napari_mamamia.widgets.batch.scored_masks import ScoredMasks
from napari_mamamia.widgets.cases.describing import LayoutQuestion
from napari_mamamia.widgets.cases.flow import CasesFlow
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.cases.page import CasesPage
from napari_mamamia.widgets.dicom.flow import ImportFlow
from napari_mamamia.widgets.dicom.page import ImportPage
from napari_mamamia.widgets.dock.blind import BlindFlow
from napari_mamamia.widgets.dock.dropping import Dropping
from napari_mamamia.widgets.dock.header_flow import HeaderFlow, Jumping
from napari_mamamia.widgets.dock.layer_watch import LayerWatch
from napari_mamamia.widgets.dock.results_flow import KineticsParts, ResultsFlow
from napari_mamamia.widgets.dock.results_panel import ResultsPanel
from napari_mamamia.widgets.dock.steps import PAGES, Steps
from napari_mamamia.widgets.export.flow import ExportFlow
from napari_mamamia.widgets.export.page import ExportPage
from napari_mamamia.widgets.findings.gap_views import AcceptChecks
from napari_mamamia.widgets.findings.page import FindingsPage
from napari_mamamia.widgets.hanging.bar import HangingBar
from napari_mamamia.widgets.hanging.flow import Hanging
from napari_mamamia.widgets.hanging.own_view import OwnView
from napari_mamamia.widgets.keys.key_choice import KeyChoice
from napari_mamamia.widgets.keys.panel import KeysPanel
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.measure.flow import MeasureFlow
from napari_mamamia.widgets.predict.flow import PredictFlow
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.predicting import Predicting
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.flow import RefineFlow
from napari_mamamia.widgets.refine.growing import Growing
from napari_mamamia.widgets.refine.mask_saving import MaskRefresh
from napari_mamamia.widgets.refine.measure import RefineMeasure
from napari_mamamia.widgets.refine.mouse_tools import MouseTools
from napari_mamamia.widgets.refine.page import RefinePage
from napari_mamamia.widgets.refine.protocols import Protocols
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.report.flow import ReportFlow
from napari_mamamia.widgets.report.page import ReportPage
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.score.flow import ScoreFlow
from napari_mamamia.widgets.score.page import ScorePage
from napari_mamamia.widgets.score.tagging import Tagging
from napari_mamamia.widgets.viewer.active_tool import EscapeKey, WheelTurns
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.context import WindowContext
from napari_mamamia.widgets.viewer.contrasting import Contrasting, WindowLevelDrag
from napari_mamamia.widgets.viewer.marks import Marks
from napari_mamamia.widgets.viewer.opening import Opening
from napari_mamamia.widgets.viewer.planes import Planes
from napari_mamamia.widgets.viewer.projecting import Projecting
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.subtracting import Subtracting
from napari_mamamia.widgets.viewer.view_flow import ViewFlow
from napari_mamamia.widgets.viewer.view_panel import ViewPanel

P = TypeVar("P", bound=QWidget)

_LATE: Final[dict[str, Callable[[], QWidget]]] = {
    "Batch scoring": BatchPage,
    "Review": ReviewPage,
    "Report": ReportPage,
    "Export": ExportPage,
    "Import": ImportPage,
    "Keys": KeysPanel,
}
"""Makes each page that stands at first in no place."""


class DockParts(QWidget):
    """Makes every part. `MamamiaDock`, which holds the viewer, lays them out and joins them.

    A part that a property gives is made with its page when it is first asked for, by the page that
    is turned to or by whatever else wants it, in a window while that starts; it takes what is open
    from the session then.

    Attributes
    ----------
    is_gradual
        Whether pages come into their places a turn each, or when they are asked for.
    offscreen_parent
        Holds what is in no place yet. Qt dresses all that is in a window, in one turn, each time
        that it moves: in a panel that is gradual this is a widget that is never seen.
    on_close
        What such parts do as the window closes.
    """

    is_gradual: bool
    offscreen_parent: QWidget
    viewer: Any
    session: Session
    services: Services
    notifier: Notifier
    jobs: JobRunner
    scene: Scene
    context: WindowContext

    def show_page(self, name: str) -> None:
        """Show a page by its name in `SECTIONS` of the steps."""
        self.pages.show_page(name)

    def page_steps(self, name: str) -> list[Callable[[], object]]:
        """Return what makes a page and puts it into its place, 10 to 40 ms each.

        The page may be asked for between two of them.
        """
        make, dress = partial(self._make_ahead, name), partial(self._dress_ahead, name)
        return [make, dress, partial(self.pages.make_pages, name)]

    def _make_ahead(self, name: str) -> None:
        if name in self.pages.still_to_come and name not in self._ahead:
            self._ahead[name] = self._hold_back(_LATE[name]())

    def _dress_ahead(self, name: str) -> None:
        if name in self.pages.still_to_come:
            self._ahead[name].setParent(self.pages.find_area(name).viewport())

    def _part_steps(self) -> list[Callable[[], object]]:
        """Return what makes every part, in this order, 5 to 20 ms each."""
        return [
            self._make_controllers,
            self._make_lines,
            self._make_first_pages,
            self._make_refine_page,
            self._make_score_pages,
            self._make_findings_page,
            self._make_results_panel,
            self._make_steps,
            self._make_flows,
            self._make_refine,
            self._make_results,
            self._make_kinetics,
            self._make_jumps,
        ]

    def _make_controllers(self) -> None:
        self.on_close: list[Callable[[], object]] = []
        self.keys = KeyChoice(self.context, self)
        self.idle_collection = IdleCollection(self)
        self.canvas_text = CanvasText(self.scene)
        self.window_level = WindowLevelDrag(self.scene)
        context, text = self.context, self.canvas_text
        self.opening = Opening(context, text)
        self.listing = Listing(context, self.opening)
        self.editing = Editing(context)
        self.predicting = Predicting(context)
        self.subtracting = Subtracting(context, text)
        self.reviewing = Reviewing(context)
        self.events = EventLog(self.session, self.jobs, self.notifier)
        self.events.setParent(self)
        self.marks = Marks(self.scene)
        self.planes = Planes(context, text)
        self._make_tools()
        self.projecting = Projecting(context, self.planes, self.subtracting, text)
        self.contrasting = Contrasting(context)
        self.growing = Growing(context, self.editing, self.painting)
        self.measure = RefineMeasure(context, self.editing, self.marks)
        self.protocols = Protocols(context, self.editing, self.painting)
        self.refresh = MaskRefresh(context)

    def _make_tools(self) -> None:
        self.tools = MouseTools(self.context, self.editing, self.marks, self.planes.views, PAGES[0])
        self.painting, self.active_tool = self.tools.painting, self.tools.active_tool
        self.prompts, self.grow_box = self.tools.prompts, self.tools.grow_box
        links = self.planes.links
        links.is_free = lambda: self.active_tool.tool is None
        self.wheel = WheelTurns(self.context, lambda: self.active_tool.tool is None)
        links.tools += [self.window_level.attach, self.wheel.attach]
        links.brushes.append(self.tools.attach)
        self.planes.on_close.append(self.painting.cursor.come_home)
        self.painting.cursor.canvas_of_view = self.planes.canvas

    def _make_lines(self) -> None:
        self.header = self._hold_back(Header())
        self.view_panel = self._hold_back(ViewPanel())
        self.hanging_bar = self._hold_back(HangingBar())

    def _make_first_pages(self) -> None:
        self.cases_page = self._hold_back(CasesPage())
        self.predict_page = self._hold_back(PredictPage())

    def _make_refine_page(self) -> None:
        self.refine_page = self._hold_back(RefinePage())

    def _make_score_pages(self) -> None:
        self.score_page = self._hold_back(ScorePage())
        self.kinetics_page = self._hold_back(KineticsPage())

    def _make_findings_page(self) -> None:
        self.findings_page = self._hold_back(FindingsPage())

    def _make_results_panel(self) -> None:
        self.results = ResultsPanel(self.jobs, self.offscreen_parent)
        self.results.hide()
        self.bottom = BottomDock(self.viewer, self.results, self.results.fill_steps)

    def _make_steps(self) -> None:
        pages = {
            "Cases": self.cases_page,
            "Findings": self.findings_page,
            "Kinetics": self.kinetics_page,
            "Predict": self.predict_page,
            "Refine": self.refine_page,
            "Score": self.score_page,
        }
        self._ahead: dict[str, QWidget] = dict(pages)
        late = {
            "Batch scoring": lambda: self.batch_flow,
            "Review": lambda: self.review_flow,
            "Report": lambda: self.report_flow,
            "Export": lambda: self.export_flow,
            "Import": lambda: self.import_flow,
            "Keys": lambda: self.keys_panel,
        }
        placed = {name: partial(self._fill_page, name, type(page)) for name, page in pages.items()}
        self.pages = Steps(placed | late, self.view_panel)
        if not self.is_gradual:
            self.pages.make_pages(*placed)
        self.pages.setParent(self)

    def _make_flows(self) -> None:
        context, at_work = self.context, (self.opening, self.editing)
        images = (self.subtracting, self.projecting, self.contrasting)
        self.view_flow = ViewFlow(context, self.view_panel, self.planes, *images)
        self.header_flow = HeaderFlow(context, self.header)
        self.readers = Readers(context, self.header, *at_work)
        self.cases_flow = CasesFlow(context, self.cases_page, self.listing, *at_work)
        self.layout_question = LayoutQuestion(context, self.cases_page, self.listing)
        self.predict_flow = PredictFlow(context, self.predict_page, self.predicting, self.prompts)

    def _make_refine(self) -> None:
        tools = (
            self.active_tool,
            self.painting,
            self.growing,
            self.grow_box,
            self.measure,
            self.marks,
        )
        people = (self.protocols, self.readers, self.keys.keys)
        self.refine_flow = RefineFlow(
            self.context,
            self.refine_page,
            *(self.header, self.editing, *tools),
            *people,
            lambda: self.accept_checks.accept(lambda: self.cases_flow.open_neighbour(1)),
            lambda: self.review_flow.accept(),
        )

    def _make_results(self) -> None:
        context = self.context
        self.tagging = Tagging(context, self.readers.with_reader)
        self.score_flow = ScoreFlow(context, self.score_page, self.reviewing, self.tagging)
        scored = ScoredMasks(context, self.reviewing)
        shown = (self.cases_flow, self.opening)
        compared = (*shown, self.reviewing, scored)
        self.results_review = ResultsReview(context, self.results.cases, *compared)
        self.leaderboard_flow = LeaderboardFlow(context, self.results.leaderboard, *shown, scored)
        after = (self.results_review, self.tagging)
        self.results_flow = ResultsFlow(context, self.results, self.bottom, *after)

    def _make_kinetics(self) -> None:
        context = self.context
        asked = (self.kinetics_page, self.findings_page, self.readers.with_reader)
        self.kinetics = KineticsParts(context, *asked, self.results, self.bottom, self.tools)
        self.session.phases_changed.connect(self.canvas_text.update)
        views = (self.planes, self.view_flow, self.subtracting, self.projecting, self.contrasting)
        own_view = OwnView(context, *views, self.kinetics.map)
        shown = (self.kinetics.map, self.kinetics.hang_curves)
        parts = (self.hanging_bar, own_view, self.opening)
        self.hanging = Hanging(context, *parts, *views, *shown)
        drawn_with = (self.pages.measure, self.tools.drawing, self.planes)
        self.measuring = MeasureFlow(context, *drawn_with, self.readers.with_reader)
        findings = self.kinetics.findings
        findings.marks_changed.connect(self.measuring.show_marks)
        self.measuring.mark_moved.connect(findings.move_mark)
        self.measuring.mark_removed.connect(lambda key: findings.move_mark(key, None))
        self.measuring.find_lesion = findings.find_lesion
        self.measuring.list_lesions = findings.list_lesions
        self.accept_checks = AcceptChecks(context, self.refine_page.gaps, self.show_page)
        self.accept_checks.follow("Findings", findings.list_gaps, self.findings_page.show_gap)
        findings.gaps_changed.connect(self.accept_checks.look)
        self.escape = EscapeKey(self.scene.viewer, self.active_tool)

    def _make_jumps(self) -> None:
        context, uncertainty = self.context, self.predict_page.uncertainty
        self.dropping = Dropping(context, self, self.cases_flow)
        self.jumping = Jumping(context, self.reviewing, uncertainty, self.pages)
        shown = (self.projecting, self.kinetics.map, self.reviewing)
        at_work = (self.opening, self.editing)
        self.layer_watch = LayerWatch(context, *at_work, *shown)
        edited = (self.refine_page, self.listing, *at_work, self.readers)
        self.blind = BlindFlow(context, self.header, self.pages, *edited)

    # ------------------------------------------------- made when first asked for

    @property
    def batch_page(self) -> BatchPage:
        """Page Batch scoring."""
        return self.batch_flow.page

    @cached_property
    def batch_flow(self) -> BatchFlow:
        """Page Batch scoring at work."""
        flow = BatchFlow(self.context, self._fill_page("Batch scoring", BatchPage))
        flow.page.leaderboard_wanted.connect(self.show_leaderboard)
        self.results_flow.follow(flow)
        return flow

    @property
    def review_page(self) -> ReviewPage:
        """Page Review."""
        return self.review_flow.page

    @cached_property
    def review_flow(self) -> ReviewFlow:
        """Page Review at work."""
        page = self._fill_page("Review", ReviewPage)
        at_work = (self.listing, self.opening, self.editing)
        flow = ReviewFlow(self.context, page, *at_work, self.readers, self.protocols)
        flow.shown_wanted.connect(lambda: self.show_page("Review"))
        self.accept_checks.follow("Review", flow.reading.list_gaps, page.form.show_gap)
        page.form.changed.connect(self.accept_checks.look)
        self.on_close.append(flow.close)
        return flow

    @property
    def report_page(self) -> ReportPage:
        """Page Report."""
        return self.report_flow.page

    @cached_property
    def report_flow(self) -> ReportFlow:
        """Page Report at work."""
        page = self._fill_page("Report", ReportPage)
        at_work = (self.editing, self.kinetics.findings, self.readers.with_reader)
        return ReportFlow(self.context, page, *at_work)

    @property
    def export_page(self) -> ExportPage:
        """Page Export."""
        return self.export_flow.page

    @cached_property
    def export_flow(self) -> ExportFlow:
        """Page Export at work."""
        return ExportFlow(self.context, self._fill_page("Export", ExportPage), self.editing)

    @property
    def import_page(self) -> ImportPage:
        """Page Import."""
        return self.import_flow.page

    @cached_property
    def import_flow(self) -> ImportFlow:
        """Page Import at work."""
        page = self._fill_page("Import", ImportPage)
        flow = ImportFlow(self.context, page, self.cases_flow.open_data_set)
        flow.shown_wanted.connect(self.pages.show_import)
        flow.left.connect(lambda: self.show_page("Cases"))
        flow.state_changed.connect(lambda: self.cases_page.show_import_begun(flow.is_begun))
        self.on_close.append(flow.close)
        return flow

    @cached_property
    def keys_panel(self) -> KeysPanel:
        """The table of keys."""
        panel = self._fill_page("Keys", KeysPanel)
        panel.show_keys(self.keys.keys)
        panel.closed.connect(self.pages.toggle_keys)
        panel.key_wanted.connect(self.keys.change)
        panel.reset_wanted.connect(self.keys.reset)
        self.keys.changed.connect(panel.show_keys)
        self.keys.refused.connect(panel.show_refused)
        return panel

    def _hold_back(self, widget: P) -> P:
        """Let a widget end with the panel that is not in its place yet."""
        if self.is_gradual:
            widget.setParent(self.offscreen_parent)
        return widget

    def _fill_page(self, name: str, kind: type[P]) -> P:
        ahead = self._ahead.pop(name, None)
        page: P = ahead if isinstance(ahead, kind) else kind()
        self.pages.fill(name, page)
        self.keys.name_in(page)
        return page
