"""The widgets and controllers of one viewer's window, created in order of dependency."""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from qtpy.QtCore import QEvent, QObject, Qt, QTimer, Signal
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.features import RESULTS, find_opener, load_attribute
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.services.case.sources import SourceKind
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.blinding import NOTHING_ELSE
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.base.event_log import EventLog
from napari_mamamia.widgets.base.event_loop import IdleCollection
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.base.notify import Notifier, plain_text
from napari_mamamia.widgets.base.pages import find_page, list_pages
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
from napari_mamamia.widgets.controls.drops import dropped_paths
from napari_mamamia.widgets.dicom.flow import ImportFlow
from napari_mamamia.widgets.dicom.page import ImportPage
from napari_mamamia.widgets.dock.blind import BlindFlow
from napari_mamamia.widgets.dock.header_flow import HeaderFlow, Jumping
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
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.measure.flow import MeasureFlow
from napari_mamamia.widgets.predict.flow import PredictFlow
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.predicting import Predicting
from napari_mamamia.widgets.refine.accepting import AcceptedLine, Accepting, AcceptRow
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
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.contrasting import Contrasting, WindowLevelDrag
from napari_mamamia.widgets.viewer.layer_stack import empty_layer
from napari_mamamia.widgets.viewer.marks import Marks
from napari_mamamia.widgets.viewer.opening import Opening
from napari_mamamia.widgets.viewer.planes import Planes
from napari_mamamia.widgets.viewer.projecting import Projecting
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.subtracting import Subtracting
from napari_mamamia.widgets.viewer.view_flow import ViewFlow
from napari_mamamia.widgets.viewer.view_panel import ViewPanel


class LayerWatch(WindowPart):
    """A component that adopts cases added by other means, and handles deleted layers."""

    def __init__(
        self,
        context: WindowContext,
        opening: Opening,
        editing: Editing,
        projecting: Projecting,
        kinetic_map: KineticMapControl,
        reviewing: Reviewing,
    ) -> None:
        super().__init__(context)
        self._opening = opening
        self._editing = editing
        self._projecting = projecting
        self._kinetic_map = kinetic_map
        self._reviewing = reviewing
        self._adopt = QTimer(self)
        self._adopt.setSingleShot(True)
        self._adopt.timeout.connect(self._adopt_case)
        self._close = QTimer(self)
        self._close.setSingleShot(True)
        self._close.timeout.connect(self._close_case)
        self._foreign: list[Any] = []
        self._sweep = QTimer(self)
        self._sweep.setSingleShot(True)
        self._sweep.timeout.connect(self._remove_foreign)
        self._session.blinding_changed.connect(self._hide_foreign)
        events = self._scene.viewer.layers.events
        events.inserted.connect(self._on_inserted)
        events.removed.connect(self._on_removed)

    def adopt_later(self) -> None:
        """Adopt a case in the viewer after all its layers are added."""
        self._adopt.start()

    def _adopt_case(self) -> None:
        self._editing.save_if_needed(lambda saved: self._opening.adopt() if saved else None)

    def _close_case(self) -> None:
        """Close a case whose phases were deleted, after napari has removed the selected layers.

        Closing also removes other layers of the case, which must not happen while napari iterates
        over the layers.
        """
        if self._scene.layer(Role.PHASE) is None:
            self._editing.save_if_needed(lambda _saved: self._session.close_case())

    def _on_inserted(self, event: Any) -> None:
        if self._scene.is_changing:
            return
        if self._session.blinding.is_blind:
            self._hide_layer(event.value)
            return
        tag = tag_of(event.value)
        if tag is not None and tag.case_id:
            self.adopt_later()

    def _hide_foreign(self) -> None:
        if self._session.blinding.is_blind:
            for layer in self._scene.viewer.layers:
                self._hide_layer(layer)
            self._scene.viewer.status = ""

    def _hide_layer(self, layer: Any) -> None:
        """Hide a layer that was added by other means and may be a mask, and remove it later.

        The layer is not removed immediately, because napari has not finished adding it.
        """
        layer.visible = False
        layer.metadata = {}
        empty_layer(layer)
        layer.name = "hidden"
        self._foreign.append(layer)
        self._sweep.start()

    def _remove_foreign(self) -> None:
        layers, self._foreign = self._foreign, []
        with self._scene.stack.changing():
            self._scene.stack.remove(layers)
        self._notifier.warn(NOTHING_ELSE)

    def _on_removed(self, event: Any) -> None:
        tag = tag_of(event.value)
        if tag is None or self._scene.is_changing or tag.case_id != self._session.case_id:
            return
        if tag.role is Role.PHASE:
            self._close.start(0)
        elif tag.role is Role.SUBTRACTION:
            self._scene.overlays.hide_subtraction()
        elif tag.role is Role.PROJECTION:
            self._projecting.hide()
            self._scene.overlays.hide_projection()
        elif tag.role is Role.MAP:
            self._kinetic_map.hide()
        elif tag.role is Role.AGREEMENT:
            self._reviewing.turn_off()
        # `Editing` saves strokes on a refined mask before it closes the mask.
        elif tag.role is not Role.REFINED:
            self._session.drop_mask(tag.role)


_FOR_NAPARI: Final = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier
"""Modifiers with which napari handles a drop: Alt to choose a reader, Shift to stack."""


class Dropping(WindowPart):
    """A handler of drops on the dock, and on napari's view while the dock exists.

    The signal `cases_wanted` requests the page with the cases of a dropped data set;
    `dicom_dropped` carries a folder with DICOM files. Paths that a feature opens are passed to the
    feature.
    """

    cases_wanted = Signal()
    dicom_dropped = Signal(object)

    def __init__(self, context: WindowContext, panel: QWidget, cases: CasesFlow) -> None:
        super().__init__(context)
        self._parts: list[QWidget] = []
        self._panel = panel
        self._cases = cases
        self.watch_part(panel)

    def watch_part(self, part: QWidget) -> None:
        """Handle drops on a widget of this program in the window."""
        self._parts.append(part)
        part.setAcceptDrops(True)
        part.installEventFilter(self)

    def watch_view(self) -> None:
        """Watch the viewer's main view, if it has a window; may be called again."""
        view = main_view(self._scene.viewer)
        if view is not None:
            view.installEventFilter(self)

    def take(self, paths: list[Path]) -> bool:
        """Open DICOM, a study, a ranking or a data set; return False for all other paths."""
        if not paths:
            return False
        is_one = len(paths) == 1
        try:
            opener = find_opener(paths[0]) if is_one else None
        except (
            SaveError
        ) as error:  # The share does not respond, so it is not read for anything else.
            self._notifier.warn(plain_text(error))
            return True
        if opener is not None:
            opener.open(self._panel, paths[0])
            return True
        kind = self._services.recognise(paths[0]) if is_one else None
        if kind not in (None, LayoutKind.SINGLE_FILE, LayoutKind.DICOM):
            self._open_path(paths[0])
            return True
        source = None if kind is LayoutKind.SINGLE_FILE else self._services.imports.source_of(paths)
        if source is None:
            return False
        self.dicom_dropped.emit(source)
        return True

    def take_or_open(self, paths: list[Path]) -> None:
        """Handle a drop on the dock; also try to open unknown paths, so that an error is shown."""
        if not self.take(paths) and paths:
            self._open_path(paths[0])

    def open_sources(self, paths: list[Path], case_id: str | None = None) -> None:
        """Open the sources that a user chose; a DICOM folder is opened without an import."""
        kind, path = self._services.find_source(paths)
        if kind is SourceKind.VOLUMES:
            self._jobs.start(
                "list",
                tr("Opening {name}", name=path.name),
                lambda: self._services.link_volumes(paths),
                lambda linked: self._open_path(*linked),
            )
        elif kind in (SourceKind.DATA_SET, SourceKind.DICOM):
            self._open_path(path, case_id)
        else:
            self.take_or_open([path])

    def _open_path(self, path: Path, case_id: str | None = None) -> None:
        self.cases_wanted.emit()
        self._cases.open_data_set(path, case_id)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle a drop before napari asks for a reader, including any drop on the panel."""
        if any(watched is widget for widget in self._parts):
            return self._take_on_part(event)
        if event.type() != QEvent.Type.Drop:
            return False
        is_blind = self._session.blinding.is_blind
        if QGuiApplication.keyboardModifiers() & _FOR_NAPARI and not is_blind:
            return False
        if not self.take(dropped_paths(event)):
            if not is_blind:
                return False
            self._notifier.warn(NOTHING_ELSE)
        event.acceptProposedAction()
        return True

    def _take_on_part(self, event: Any) -> bool:
        if event.type() not in (QEvent.Type.DragEnter, QEvent.Type.Drop):
            return False
        paths = dropped_paths(event)
        if paths:
            event.acceptProposedAction()
        if event.type() == QEvent.Type.Drop:
            self.take_or_open(paths)
        return True


P = TypeVar("P", bound=QWidget)


class DockParts(QWidget):
    """All widgets and controllers; `MamamiaDock` arranges and connects them.

    A property creates its page or controller at the first access, for example when the page is
    first shown. The new controller reads the open data from the session.

    Attributes
    ----------
    is_gradual
        Whether each page is inserted in a separate event-loop iteration or on request.
    offscreen_parent
        Parent of widgets that are not inserted yet. Qt styles all widgets of a window in one
        iteration each time they move, so in a gradual panel this parent is a widget that is never
        visible.
    on_close
        Callbacks that run when the window closes.
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
        """Return the steps that create a page and insert it, 10 to 40 ms each.

        The page may be requested between two steps.
        """
        make, dress = partial(self._make_ahead, name), partial(self._dress_ahead, name)
        return [make, dress, partial(self.pages.make_pages, name)]

    def _make_ahead(self, name: str) -> None:
        if name in self.pages.still_to_come and name not in self._ahead:
            self._ahead[name] = self._hold_back(self._make_widget(name))

    def _make_widget(self, name: str) -> QWidget:
        if name == "Keys":
            return KeysPanel()
        page: QWidget = load_attribute(find_page(name).widget)()
        return page

    def _dress_ahead(self, name: str) -> None:
        if name in self.pages.still_to_come:
            self._ahead[name].setParent(self.pages.find_area(name).viewport())

    def _part_steps(self) -> list[Callable[[], object]]:
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
        self.accept_reading: Callable[[], None] = lambda: None
        self._flows: dict[str, Any] = {}
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
        links.is_free = self.window_level.is_free = lambda: self.active_tool.tool is None
        self.wheel = WheelTurns(self.context, lambda: self.active_tool.tool is None)
        links.tools += [self.window_level.attach, self.wheel.attach]
        links.brushes.append(self.tools.attach)
        self.planes.on_leave.append(self.painting.cursor.come_home)
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
        self.accept_row = self._hold_back(AcceptRow())
        self.accepted_line = self._hold_back(AcceptedLine())

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
        late: dict[str, Callable[[], object]] = {
            page.name: partial(self.flow, page.name)
            for page in list_pages()
            if page.flow and page.step != RESULTS
        }
        late["Keys"] = lambda: self.keys_panel
        placed = {name: partial(self._fill_page, name, type(page)) for name, page in pages.items()}
        rows = (self.accept_row, self.accepted_line)
        self.pages = Steps(placed | late, self.view_panel, *rows)
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
        )
        self.accepting = Accepting(
            self.context,
            *(self.accept_row, self.accepted_line, self.predict_page, self.refine_page),
            *(self.predicting, self.editing, self.readers, self.show_page),
            lambda: self.pages.page,
            lambda: self.accept_checks.accept(lambda: self.cases_flow.open_neighbour(1)),
            lambda: self.accept_reading(),
        )
        self.refine_flow.next_changed.connect(self.accepting.show_next)
        self.header.reader_asked.connect(self.accepting.wait_for_reader)
        self.accepting.changed.connect(self._follow_accepted)
        self.pages.turned.connect(lambda _page: self.accepting.show())

    def _follow_accepted(self) -> None:
        accepting = self.accepting
        is_accepted, has_mask = accepting.is_accepted, accepting.has_mask
        self.pages.set_accepted(is_accepted=is_accepted, has_mask=has_mask)

    def _make_results(self) -> None:
        context = self.context
        self.tagging = Tagging(context, self.readers.record_with_reader)
        self.score_flow = ScoreFlow(context, self.score_page, self.reviewing, self.tagging)
        self.scored_masks = ScoredMasks(context, self.reviewing)
        shown = (self.cases_flow, self.opening)
        compared = (*shown, self.reviewing, self.scored_masks)
        self.results_review = ResultsReview(context, self.results.cases, *compared)
        for name in self.results.extra:
            self.flow(name)
        after = (self.results_review, self.tagging)
        self.results_flow = ResultsFlow(context, self.results, self.bottom, *after)

    def _make_kinetics(self) -> None:
        context = self.context
        asked = (self.kinetics_page, self.findings_page, self.readers.record_with_reader)
        self.kinetics = KineticsParts(context, *asked, self.results, self.bottom, self.tools)
        self.session.phases_changed.connect(self.canvas_text.update)
        views = (self.planes, self.view_flow, self.subtracting, self.projecting, self.contrasting)
        own_view = OwnView(context, *views, self.kinetics.map)
        shown = (self.kinetics.map, self.kinetics.hang_curves)
        parts = (self.hanging_bar, own_view, self.opening)
        self.hanging = Hanging(context, *parts, *views, *shown)
        drawn_with = (self.pages.measure, self.tools.drawing, self.planes)
        self.measuring = MeasureFlow(context, *drawn_with, self.readers.record_with_reader)
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

    def flow(self, name: str) -> Any:
        """Return the controller of a page, created together with the page at the first access."""
        if name not in self._flows:
            record = find_page(name)
            page = (
                self.results.extra[name]
                if record.step == RESULTS
                else self._fill_page(name, load_attribute(record.widget))
            )
            self._flows[name] = load_attribute(record.flow)(self, page)
        return self._flows[name]

    @property
    def batch_flow(self) -> BatchFlow:
        """The controller of the Batch page."""
        return cast("BatchFlow", self.flow("Batch scoring"))

    @property
    def batch_page(self) -> BatchPage:
        """The Batch page."""
        return self.batch_flow.page

    @property
    def report_flow(self) -> ReportFlow:
        """The controller of the Report page."""
        return cast("ReportFlow", self.flow("Report"))

    @property
    def report_page(self) -> ReportPage:
        """The Report page."""
        return self.report_flow.page

    @property
    def export_flow(self) -> ExportFlow:
        """The controller of the Export page."""
        return cast("ExportFlow", self.flow("Export"))

    @property
    def export_page(self) -> ExportPage:
        """The Export page."""
        return self.export_flow.page

    @property
    def import_flow(self) -> ImportFlow:
        """The controller of the Import page."""
        return cast("ImportFlow", self.flow("Import"))

    @property
    def import_page(self) -> ImportPage:
        """The Import page."""
        return self.import_flow.page

    def show_results(self, name: str) -> None:
        """Show a tab of the results below the image."""
        raise NotImplementedError

    def follow_results_button(self, control: QWidget, wanted: Any, name: str) -> None:
        """Let a button show a results tab; hide the button if no feature has this tab."""
        control.setVisible(name in self.results.extra)
        wanted.connect(lambda: self.show_results(name))

    @cached_property
    def keys_panel(self) -> KeysPanel:
        """The table of shortcuts."""
        panel = self._fill_page("Keys", KeysPanel)
        panel.show_keys(self.keys.keys)
        panel.closed.connect(self.pages.toggle_keys)
        panel.key_wanted.connect(self.keys.change)
        panel.reset_wanted.connect(self.keys.reset)
        self.keys.changed.connect(panel.show_keys)
        self.keys.refused.connect(panel.show_refused)
        return panel

    def _hold_back(self, widget: P) -> P:
        if self.is_gradual:
            widget.setParent(self.offscreen_parent)
        return widget

    def _fill_page(self, name: str, kind: type[P]) -> P:
        ahead = self._ahead.pop(name, None)
        page: P = ahead if isinstance(ahead, kind) else kind()
        self.pages.fill(name, page)
        self.keys.name_in(page)
        return page
