"""The dock "MAMA-MIA": header and pages of one viewer. It alone holds the viewer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QDockWidget, QMainWindow, QSizePolicy, QVBoxLayout, QWidget

from napari_mamamia.widgets.adapter.adapter import (
    bare,
    focus_canvas,
    main_view,
    theme_colours,
    watch_font,
)
from napari_mamamia.widgets.adapter.drawing import guard_canvas, late_controls, split_drawing
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.base.event_log import EventLog
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.base.turns import IdleCollection
from napari_mamamia.widgets.batch.flow import BatchFlow
from napari_mamamia.widgets.batch.page import BatchPage
from napari_mamamia.widgets.batch.results_review import ResultsReview
from napari_mamamia.widgets.cases.flow import CasesFlow
from napari_mamamia.widgets.cases.page import CasesPage
from napari_mamamia.widgets.controls.controls import style_sheet
from napari_mamamia.widgets.controls.drops import dropped_paths
from napari_mamamia.widgets.controls.fitting import fit_window
from napari_mamamia.widgets.controls.focus_ring import FocusRing
from napari_mamamia.widgets.dicom.flow import ImportFlow
from napari_mamamia.widgets.dicom.page import ImportPage
from napari_mamamia.widgets.dock.dropping import Dropping
from napari_mamamia.widgets.dock.header_flow import HeaderFlow
from napari_mamamia.widgets.dock.jumping import Jumping
from napari_mamamia.widgets.dock.kinetics_parts import KineticsParts
from napari_mamamia.widgets.dock.layer_watch import LayerWatch
from napari_mamamia.widgets.dock.mouse_tools import MouseTools
from napari_mamamia.widgets.dock.page_tabs import PageTabs
from napari_mamamia.widgets.dock.results_flow import ResultsFlow
from napari_mamamia.widgets.dock.results_panel import ResultsPanel
from napari_mamamia.widgets.export.flow import ExportFlow
from napari_mamamia.widgets.export.page import ExportPage
from napari_mamamia.widgets.keys.key_choice import KeyChoice
from napari_mamamia.widgets.keys.panel import KeysPanel
from napari_mamamia.widgets.kinetics.page import KineticsPage
from napari_mamamia.widgets.predict.flow import PredictFlow
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.predicting import Predicting
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.flow import RefineFlow
from napari_mamamia.widgets.refine.growing import Growing
from napari_mamamia.widgets.refine.mask_refresh import MaskRefresh
from napari_mamamia.widgets.refine.measure import RefineMeasure
from napari_mamamia.widgets.refine.page import RefinePage
from napari_mamamia.widgets.refine.protocols import Protocols
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.refine.undo_memory import UndoMemory
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.score.flow import ScoreFlow
from napari_mamamia.widgets.score.page import ScorePage
from napari_mamamia.widgets.score.scoring import Scoring
from napari_mamamia.widgets.score.tagging import Tagging
from napari_mamamia.widgets.viewer.canvas import CanvasText, WindowLevelDrag
from napari_mamamia.widgets.viewer.contrasting import Contrasting
from napari_mamamia.widgets.viewer.marks import Marks
from napari_mamamia.widgets.viewer.opening import Opening
from napari_mamamia.widgets.viewer.planes import Planes
from napari_mamamia.widgets.viewer.projecting import Projecting
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.subtracting import Subtracting
from napari_mamamia.widgets.viewer.view_flow import ViewFlow
from napari_mamamia.widgets.viewer.view_panel import ViewPanel

_WIDTH: Final = 340
_MARGIN: Final = 8
_PUT_AWAY: Final = (
    "napari's {} have no room on this screen and are put away: menu Window brings them back"
)
_NOT_SAVED: Final = (
    "Your mask is not saved, so that the window stays open: mend what is said above and save, or "
    "close the window again to lose the last changes"
)


class MamamiaDock(QWidget):
    """One for each viewer.

    Parameters
    ----------
    napari_viewer
        The viewer, a `ViewerModel`, or napari's proxy of one.
    services
        The calls that the pages make; tests pass fakes.

    Attributes
    ----------
    home
        The one dock that the panel lives in, None before it was docked.
    docks
        The docks it was put into since it was last at home; `place` empties this.
    """

    def __init__(self, napari_viewer: Any, services: Services | None = None) -> None:
        super().__init__()
        self.setObjectName("mamamia_dock")
        self.viewer = bare(napari_viewer)
        guard_canvas(main_view(self.viewer))
        split_drawing(main_view(self.viewer))
        late_controls(main_view(self.viewer), lambda layer: tag_of(layer) is not None)
        self.home: QDockWidget | None = None
        self.docks: list[QDockWidget] = []
        self._warned_of_loss = False
        self._is_fitted = False
        self._orphaned = QTimer(self)
        self._orphaned.setSingleShot(True)
        self._orphaned.timeout.connect(self._outlive_dock)
        self.services = services or Services()
        self.session = Session(self)
        self.jobs = JobRunner(self)
        self.notifier = Notifier(self)
        self.keys = KeyChoice(self.viewer, self, self.services, self.notifier, self)
        self.scene = Scene(self.viewer)
        self.idle_collection = IdleCollection(self)
        self.canvas_text = CanvasText(self.scene)
        self.window_level = WindowLevelDrag(self.scene)
        self._make_controllers()
        self._make_pages()
        self._make_flows()
        self._lay_out()
        self.focus_ring = FocusRing(self, self.results)
        self._connect()
        self._dress()
        self.layer_watch.adopt_soon()

    # -------------------------------------------------------------- for others

    def show_page(self, name: str) -> None:
        """Show a page by its name in `PAGES`."""
        self.pages.show_page(name)

    @property
    def page(self) -> str:
        """The name of the page on screen."""
        return self.pages.page

    def open_data_set(self, path: Path, case_id: str | None = None) -> None:
        """Open a data set and, if named, a case of it."""
        self.cases_flow.open_data_set(path, case_id)

    def import_dicom(self, source: Path) -> None:
        """Show what is in a DICOM folder or zip, to make cases of it."""
        self.import_flow.look(source)

    def predict(self) -> None:
        """Show the page Predict and start, if a case is open."""
        self.show_page("Predict")
        self.predict_flow.start(None)

    def close_down(self) -> bool:
        """Save what is unsaved and stop all work, because the window closes; False if not saved."""
        all_saved = self.editing.save_now()
        self.jobs.cancel_all()
        self.predict_flow.close()
        self.import_flow.close()
        self.planes.close()
        self.scene.stack.spares.close()
        self.scene.cool_down()
        if all_saved or self._warned_of_loss:
            self.editing.close()
        return all_saved

    # ------------------------------------------------------------------ making

    def _make_controllers(self) -> None:
        common = (self.jobs, self.services, self.notifier)
        self.opening = Opening(self.session, self.scene, self.canvas_text, *common)
        self.editing = Editing(self.session, self.scene, *common)
        self.predicting = Predicting(self.session, self.scene, *common)
        self.subtracting = Subtracting(self.session, self.scene, self.canvas_text, *common)
        self.scoring = Scoring(self.session, *common)
        self.reviewing = Reviewing(self.session, self.scene, *common)
        self.events = EventLog(self.session, self.jobs, self.notifier)
        self._own(self.events)
        self.marks = Marks(self.scene)
        self.planes = Planes(self.session, self.scene, self.canvas_text, self.notifier)
        self._make_tools()
        self.projecting = Projecting(
            self.session, self.scene, self.planes, self.subtracting, self.canvas_text, *common
        )
        self.contrasting = Contrasting(self.scene, *common)
        self._own(self.planes, self.projecting, self.contrasting)
        self.growing = Growing(self.scene, self.editing, self.painting, *common)
        self.measure = RefineMeasure(self.session, self.editing, self.marks, *common)
        self.protocols = Protocols(
            self.scene, self.editing, self.painting, self.services, self.notifier
        )
        self.refresh = MaskRefresh(self.session, self.scene, *common)
        self._own(self.opening, self.editing, self.predicting, self.refresh)
        self._own(self.growing, self.measure, self.protocols)
        self._own(self.subtracting, self.scoring, self.reviewing)

    def _make_tools(self) -> None:
        views = self.planes.views
        at_work = (self.session, self.scene, self.editing, self.marks)
        self.tools = MouseTools(*at_work, views, self.jobs, self.notifier)
        self.painting, self.hand = self.tools.painting, self.tools.hand
        self.prompts, self.grow_box = self.tools.prompts, self.tools.grow_box
        links = self.planes.links
        links.is_free = lambda: self.hand.tool is None
        links.tools += [self.window_level.attach, self.tools.attach]
        self.planes.farewells.append(self.painting.cursor.come_home)
        self.painting.cursor.canvas_of_view = self.planes.canvas
        self._own(self.tools)

    def _make_pages(self) -> None:
        self.header = Header()
        self.view_panel = ViewPanel()
        self.view_panel.hide()
        self.cases_page = CasesPage()
        self.predict_page = PredictPage()
        self.refine_page = RefinePage()
        self.score_page = ScorePage()
        self.kinetics_page = KineticsPage()
        self.batch_page = BatchPage()
        self.results = ResultsPanel(self.jobs, self)
        self.results.hide()
        self.bottom = BottomDock(self.viewer, self.results)
        self.export_page = ExportPage()
        self.import_page = ImportPage()
        self.keys_panel = KeysPanel(self.keys.keys)
        pages = (
            self.cases_page,
            self.predict_page,
            self.refine_page,
            self.score_page,
            self.kinetics_page,
            self.batch_page,
            self.export_page,
        )
        self.pages = PageTabs(pages, self.import_page, self.keys_panel)
        self._own(self.pages)

    def _make_flows(self) -> None:
        seen, common = (self.session, self.scene), (self.jobs, self.services, self.notifier)
        session, services, notifier = self.session, self.services, self.notifier
        images = (self.subtracting, self.projecting, self.contrasting)
        self.view_flow = ViewFlow(self.view_panel, *seen, self.planes, *images, services)
        self.header_flow = HeaderFlow(self.header, *seen, self.jobs, notifier)
        at_work = (session, self.opening, self.editing)
        self.readers = Readers(self.header, *at_work, services, notifier)
        self.cases_flow = CasesFlow(self.cases_page, *at_work, services, notifier)
        self.predict_flow = PredictFlow(
            self.predict_page, session, self.scene, self.predicting, self.prompts, *common
        )
        self._own(self.view_flow, self.header_flow, self.readers)
        self._own(self.cases_flow, self.predict_flow)
        self._make_refine()
        self._make_results()
        self._make_import()
        self._make_kinetics()
        self._make_jumps()

    def _make_refine(self) -> None:
        tools = (self.hand, self.painting, self.growing, self.grow_box, self.measure, self.marks)
        self.refine_flow = RefineFlow(
            self.refine_page,
            self.header,
            self.session,
            self.scene,
            self.editing,
            *tools,
            self.protocols,
            self.readers,
            self.keys.keys,
            self.notifier,
            lambda: self.cases_flow.open_neighbour(1),
        )
        self.undo_memory = UndoMemory(self.refine_page.history, self.editing, self.services)
        self._own(self.refine_flow, self.undo_memory)

    def _make_results(self) -> None:
        common = (self.jobs, self.services, self.notifier)
        self.tagging = Tagging(self.session, *common, lambda then: self.readers.with_reader(then))
        self.score_flow = ScoreFlow(
            self.score_page,
            self.session,
            self.scene,
            self.scoring,
            self.reviewing,
            self.tagging,
            self.services,
        )
        at_work = (self.session, self.opening, self.editing)
        self.export_flow = ExportFlow(self.export_page, *at_work, *common)
        self.batch_flow = BatchFlow(self.batch_page, self.session, self.opening, *common)
        self.results_review = ResultsReview(
            self.results.cases,
            self.cases_flow,
            self.opening,
            self.reviewing,
            self.session,
            self.scene,
            *common,
        )
        self.results_flow = ResultsFlow(
            self.results, self.bottom, self.batch_flow, self.results_review, self.tagging, *common
        )
        self._own(self.tagging, self.score_flow, self.export_flow)
        self._own(self.batch_flow, self.results_review, self.results_flow)

    def _make_import(self) -> None:
        open_data_set = self.cases_flow.open_data_set
        common = (self.jobs, self.services, self.notifier)
        self.import_flow = ImportFlow(self.import_page, self.session, open_data_set, *common)
        self.dropping = Dropping(self.import_flow, self.cases_flow, self.services)
        self.dropping.cases_wanted.connect(lambda: self.show_page("Cases"))
        self._own(self.import_flow, self.dropping)

    def _make_kinetics(self) -> None:
        page, seen, calls = self.kinetics_page, (self.session, self.scene), self.services.kinetics
        self.kinetics = KineticsParts(
            page, self.results, self.bottom, *seen, self.tools, self.jobs, calls, self.notifier
        )
        self._own(self.kinetics)
        self.session.phases_changed.connect(self.canvas_text.update)

    def _make_jumps(self) -> None:
        seen = (self.session, self.scene, self.planes, self.reviewing)
        doubt, jobs = self.predict_page.doubt, self.jobs
        self.jumping = Jumping(*seen, doubt, self.pages, jobs, self.services, self.notifier)
        shown = (self.projecting, self.kinetics.map, self.reviewing)
        self.layer_watch = LayerWatch(self.session, self.scene, self.opening, self.editing, *shown)
        self._own(self.jumping, self.layer_watch)

    def _own(self, *parts: QObject) -> None:
        """Let parts end with the dock, their timers included."""
        for part in parts:
            part.setParent(self)

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_MARGIN, _MARGIN // 2, _MARGIN, _MARGIN // 2)
        layout.setSpacing(6)
        layout.addWidget(self.header)
        layout.addWidget(self.view_panel)
        layout.addWidget(self.pages.tabs)
        layout.addWidget(self.pages.stack, stretch=1)
        self.setMinimumWidth(_WIDTH)
        self.setAcceptDrops(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def _connect(self) -> None:
        self.pages.turned.connect(self._follow_page)
        self.pages.turned.connect(self.refresh.look)
        self.hand.page_wanted.connect(self.show_page)
        self.tools.signs.problem_changed.connect(self.header.set_refusal)
        self.projecting.changed.connect(self.tools.aim.look)
        self.pages.tabs.tabBarClicked.connect(lambda _: self.header.drop_hint())
        self.keys_panel.closed.connect(self.pages.toggle_keys)
        pages = (self.predict_page, self.refine_page, self.score_page, self.export_page)
        for page in (*pages, self.kinetics_page):
            page.cases_wanted.connect(lambda: self.show_page("Cases"))
        self.predict_page.grow_wanted.connect(self._grow_candidate)
        self._connect_header()
        self._connect_review()
        self._connect_import()
        self.opening.case_shown.connect(lambda: focus_canvas(self.viewer))
        for follow in (self.header_flow.show, self.kinetics.flow.refresh):
            self.opening.mask_shown.connect(follow)
        self.viewer.events.theme.connect(self._dress)
        watch_font(lambda: self._dress())
        self.keys.bind(self._actions())
        self.keys.changed.connect(self.keys_panel.show_keys)
        self.keys.changed.connect(self.refine_flow.set_keys)
        self.keys.refused.connect(self.keys_panel.show_refused)
        self.keys_panel.key_wanted.connect(self.keys.change)
        self.keys_panel.reset_wanted.connect(self.keys.reset)

    def _connect_header(self) -> None:
        header = self.header
        header.previous_wanted.connect(lambda: self.cases_flow.open_neighbour(-1))
        header.next_wanted.connect(lambda: self.cases_flow.open_neighbour(1))
        header.lesion_wanted.connect(self.jumping.to_lesion)
        header.mask_toggled.connect(self.kinetics.flow.refresh)
        header.keys_wanted.connect(self.pages.toggle_keys)
        header.view_wanted.connect(self.view_panel.setVisible)

    def _connect_import(self) -> None:
        flow = self.import_flow
        self.cases_page.import_wanted.connect(self.pages.show_import)
        flow.shown_wanted.connect(self.pages.show_import)
        flow.left.connect(lambda: self.show_page("Cases"))
        flow.state_changed.connect(lambda: self.cases_page.show_import_begun(flow.is_begun))
        flow.imported.connect(self.export_page.options.show_study)

    def _connect_review(self) -> None:
        page, reviewing = self.score_page, self.reviewing
        page.batch_wanted.connect(lambda: self.show_page("Batch scoring"))
        self.batch_page.table_wanted.connect(self._show_results)
        self.batch_page.log_wanted.connect(self._show_log)
        self.results.cohort.report_wanted.connect(self.batch_page.show_report)
        self.events.added.connect(self.results.log.add)
        reviewing.changed.connect(self.header.set_agreement)
        reviewing.switched.connect(page.set_agreement)
        page.next_error_wanted.connect(reviewing.next_error)
        page.previous_error_wanted.connect(reviewing.previous_error)
        page.agreement_toggled.connect(
            lambda on: reviewing.turn_on() if on else reviewing.turn_off()
        )

    def _actions(self) -> dict[str, Callable[..., object]]:
        own: dict[str, Callable[..., object]] = {
            "previous_phase": lambda: self.scene.step_phase(-1),
            "next_phase": lambda: self.scene.step_phase(1),
            "kinetic_map": self.kinetics.map.toggle,
            "hide_masks": self.scene.set_masks_hidden,
            "outline": self.scene.toggle_outline,
            "lesion": self.jumping.to_lesion_or_error,
            "previous_error": self.jumping.to_previous_error,
            "next_case": lambda: self.cases_flow.open_neighbour(1),
            "previous_case": lambda: self.cases_flow.open_neighbour(-1),
            "keys": self.pages.toggle_keys,
        }
        return own | self.view_flow.actions() | self.refine_flow.actions()

    # ----------------------------------------------------------------- actions

    def _grow_candidate(self) -> None:
        self.show_page("Refine")
        self.refine_flow.grow_prediction()

    def _show_results(self) -> None:
        self.results.show_cases()
        self.bottom.show()

    def _show_log(self) -> None:
        self.results.show_log()
        self.bottom.show()

    def _follow_page(self, page: str) -> None:
        self.hand.turn(page)
        self.scoring.want(page == "Score")
        self.kinetics.flow.want(page == "Kinetics")

    # --------------------------------------------------------------- window

    def _dress(self, _event: object = None) -> None:
        theme = theme_colours(self.viewer)
        rules = style_sheet(theme)
        self.setStyleSheet(rules)
        self.results.setStyleSheet(rules)
        self.header.dress(theme.text)
        self.focus_ring.set_colour(theme.text)

    def event(self, event: QEvent) -> bool:
        """Remember the docks that napari puts the panel into, and see when its own is removed."""
        if event.type() == QEvent.Type.ParentChange:
            if isinstance(self.parent(), QDockWidget):
                self.docks.append(self.parent())
            elif self.parent() is None and self.home is not None:
                self._orphaned.start()
        return bool(super().event(event))

    @property
    def _main_window(self) -> QWidget:
        """The viewer's window, also while the panel floats beside it or its dock is closed."""
        view = main_view(self.viewer)
        return self.window() if view is None else view.window()

    def put_aside(self) -> None:
        """Hide with the dock, its cross was clicked: all that is open is open when it is back."""
        self.hand.put_down()
        self.editing.save_if_needed(lambda _saved: None)
        if self.home is not None:
            self.home.hide()

    def _outlive_dock(self) -> None:
        """Stay in the window after something removed the dock."""
        if self.parent() is not None:
            return
        self.home, self.docks = None, []
        self.put_aside()
        window = self._main_window
        if window is not self:
            self.setParent(window)
            self.hide()

    def showEvent(self, event: Any) -> None:
        """Watch the window for its closing."""
        super().showEvent(event)
        self._main_window.installEventFilter(self)
        self.dropping.watch(self.viewer)
        QTimer.singleShot(0, self._fit)

    def _fit(self) -> None:
        """Bring the window into its screen, once: napari shows it after it made the docks."""
        window = self.window()
        if self._is_fitted or self.home is None or not isinstance(window, QMainWindow):
            return
        self._is_fitted = True
        away = fit_window(window, self.home, self.pages.width + 2 * _MARGIN)
        if away:
            self.notifier.hint(_PUT_AWAY.format(" and ".join(away)))

    def hideEvent(self, event: QHideEvent) -> None:
        """Put the tool down with its controls; a minimised window keeps it."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.hand.put_down()

    def dragEnterEvent(self, event: Any) -> None:
        """Take local files and folders."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Look into DICOM, open a data set, or say why neither."""
        event.acceptProposedAction()
        self.dropping.take_or_open(dropped_paths(event))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Save before the window closes; where that fails, keep it open once.

        `viewer.close()` takes the layers away first, and then there is no window to keep.
        """
        if event.type() == QEvent.Type.WindowActivate and watched is self._main_window:
            self.refresh.look()
        closing = event.type() == QEvent.Type.Close and watched is self._main_window
        if not closing or self.close_down() or self._warned_of_loss:
            return False
        if self.scene.layer(Role.PHASE) is None:
            return False
        self._warned_of_loss = True
        self.notifier.warn_loudly(_NOT_SAVED)
        event.ignore()
        return True
