"""The MAMA-MIA dock with header and pages; only this module refers to the viewer."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QRect, QSize, Qt, Signal
from qtpy.QtGui import QShortcut
from qtpy.QtWidgets import (
    QBoxLayout,
    QDockWidget,
    QMainWindow,
    QSizePolicy,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.plugins import list_problems
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter import adapter
from napari_mamamia.widgets.adapter.drawing import late_controls
from napari_mamamia.widgets.adapter.outlines import draw_smooth_outlines
from napari_mamamia.widgets.adapter.sliders import fit_slider_texts
from napari_mamamia.widgets.adapter.writing import draw_writing_once
from napari_mamamia.widgets.base.blinding import guard_services
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import find_line_style, tag_of
from napari_mamamia.widgets.base.notify import Level, Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.controls.controls import style_sheet, tool_button
from napari_mamamia.widgets.controls.inputs import PressGuard, TypingGuard, is_typing
from napari_mamamia.widgets.controls.tab_order import FocusRing, ReadingOrder, join_rooms
from napari_mamamia.widgets.dock.case_line import CaseLine, fix_bar
from napari_mamamia.widgets.dock.docking import Docking, find_first_place
from napari_mamamia.widgets.dock.parts import DockParts
from napari_mamamia.widgets.dock.steps import WORK_LIST, StepFlow, Steps
from napari_mamamia.widgets.keys.passing import KeyPassing
from napari_mamamia.widgets.score.agreement import AgreementLegend
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.scene import Scene

_STRIP: Final = 24


_NAPARIS: Final = ("layer list", "layer controls")
"""Names of napari's docks that are hidden; docks of other plugins remain visible."""


class ReadingMode(WindowPart):
    """The reading mode, which hides napari's controls; `is_on` says whether it is active.

    `is_wanted` says whether the program starts in reading mode.

    The signal `entering` is emitted before controls are hidden, and `leaving` before they are
    restored and when the window closes. The window geometry before reading mode, and before the
    window grew for its content on a low screen, is restored before napari saves its settings.
    Otherwise napari would save a size that no user chose.
    """

    entering = Signal()
    entered = Signal()
    leaving = Signal()

    def __init__(self, context: WindowContext, line: CaseLine, panel: QWidget) -> None:
        super().__init__(context)
        self.is_on = False
        self.is_wanted = False
        self.line = line
        self._panel = panel
        line.setParent(panel)
        line.hide()
        self._hidden: list[QWidget] = []
        self._had_welcome = False
        self._place: QRect | None = None
        self._own_places: list[QRect] = []

    def toggle(self) -> None:
        """Enter or leave reading mode."""
        if self.is_on:
            self.leave()
        else:
            self.enter()

    def begin(self) -> None:
        """Enter reading mode in a new window, and size the window if the user has not done so."""
        window = self._find_window()
        self.is_wanted = False
        self.enter()
        self._place, self._own_places = None, []  # napari sized the window while it was hidden.
        if window is None or adapter.has_own_window_size() or window.isMaximized():
            return
        self._place, self._own_places = window.geometry(), [find_first_place(window)]
        window.setGeometry(self._own_places[0])

    def enter(self) -> None:
        """Hide napari's visible controls, and show the line above the image."""
        window = self._find_window()
        if window is None or self.is_on:
            return
        self.entering.emit()
        layout: Any = (
            window.layout()
        )  # This occurs after a close that was refused (see `_go_back`).
        layout.setSizeConstraint(layout.SizeConstraint.SetDefaultConstraint)
        docks = window.findChildren(QDockWidget)
        parts = [dock for dock in docks if dock.objectName() in _NAPARIS and not dock.isFloating()]
        bars = [window.menuBar(), window.statusBar()]
        self._hidden = [widget for widget in (*parts, *bars) if not widget.isHidden()]
        for widget in self._hidden:
            widget.hide()
        view: Any = adapter.main_view(self._scene.viewer)
        self._had_welcome = bool(getattr(view, "show_welcome_screen", False))
        if self._had_welcome:
            view.show_welcome_screen = False
        window.addToolBar(Qt.ToolBarArea.TopToolBarArea, self.line)
        window.addActions(adapter.list_ways_out(window))
        self.line.settle()
        self.line.show()
        self.is_on = True
        window.installEventFilter(self)
        self.entered.emit()

    def leave(self) -> None:
        """Show the controls that were visible before."""
        if not self.is_on:
            return
        self.leaving.emit()
        window = self._find_window()
        self.line.give_back()
        if window is not None:
            window.removeToolBar(self.line)
            for action in adapter.list_ways_out(window):
                window.removeAction(action)
        self.line.setParent(self._panel)
        self.line.hide()
        hidden, self._hidden = self._hidden, []
        for widget in hidden:
            widget.show()
        view: Any = adapter.main_view(self._scene.viewer)
        if self._had_welcome and view is not None:
            view.show_welcome_screen = True
        self._had_welcome, self.is_on = False, False

    def eventFilter(self, watched: QObject, event: Any) -> bool:
        """Restore everything before napari saves the window's state."""
        window = self._find_window()
        if event.type() == QEvent.Type.Resize and watched is window is not None:
            self._note_growth(window, event.oldSize(), event.size())
        if event.type() == QEvent.Type.Close and watched is window:
            if adapter.asks_before_close(window, event):
                return True
            self.leave()
            self._go_back()
        return False

    def _note_growth(self, window: QMainWindow, before: QSize, now: QSize) -> None:
        if now == before or now != before.expandedTo(window.minimumSize()):
            return
        corner = window.geometry().topLeft()
        if before not in [geometry.size() for geometry in self._own_places]:
            self._place, self._own_places = QRect(corner, before), []
        self._own_places.append(QRect(corner, now))

    def _go_back(self) -> None:
        window = self._find_window()
        if window is not None and self._place and window.geometry() in self._own_places:
            # The content may now need more space than before, and napari would save that size.
            layout: Any = window.layout()
            layout.setSizeConstraint(layout.SizeConstraint.SetNoConstraint)
            window.setMinimumSize(0, 0)
            window.setGeometry(self._place)

    def _find_window(self) -> QMainWindow | None:
        view = adapter.main_view(self._scene.viewer)
        window: Any = None if view is None else view.window()
        return window if isinstance(window, QMainWindow) else None


class PanelFold(WindowPart):
    """A component that collapses the panel to a strip at the window's edge, or hides it completely.

    Shortcuts of a hidden widget do not work, so the panel's shortcuts are moved to the strip or the
    line.
    """

    def __init__(
        self, context: WindowContext, panel: QWidget, docking: Docking, reading: ReadingMode
    ) -> None:
        super().__init__(context)
        self._panel = panel
        self._docking = docking
        self._reading = reading
        self._bottom: BottomDock | None = None
        self.is_folded = False
        self.is_alone = False
        self._message = (Level.HINT, "")
        self._strip = QToolBar(panel)
        fix_bar(self._strip, "panel_strip")
        self._strip.setFixedWidth(_STRIP)
        tip = with_key(tr("Shows the panel again."), "panel")
        show = tool_button("panel_show", "◂", tip, self.unfold)
        show.setFixedSize(_STRIP, 3 * _STRIP)
        self._strip.addWidget(show)
        self._strip.hide()
        docking.shown.connect(self._follow_panel)
        reading.leaving.connect(self.unfold)
        reading.line.panel_wanted.connect(self.unfold)
        self._notifier.said.connect(self._keep_message)

    def follow_results(self, bottom: BottomDock) -> None:
        """Hide the results as well while only the image is shown."""
        self._bottom = bottom

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the panel's shortcuts, by their names in the table."""
        return {"panel": self.toggle, "alone": self.toggle_alone}

    def toggle(self) -> None:
        """Collapse the panel to its strip, or show it."""
        if self.is_folded:
            self.unfold()
        else:
            self.fold()

    def toggle_alone(self) -> None:
        """Show only the image and its line, or show the panel again."""
        if self.is_alone:
            self.unfold()
            return
        self._reading.enter()
        self.is_alone = True
        if self._bottom is not None:
            self._bottom.fold()
        self.fold()
        self._strip.hide()

    def fold(self) -> None:
        """Hide the panel; an active tool remains active and is shown in the line."""
        window: Any = self._panel.window()
        home: Any = self._docking.home
        is_there = home is not None and isinstance(window, QMainWindow)
        if not is_there or home.isFloating() or window.centralWidget().isHidden():
            self.is_alone = False
            return
        if not self.is_folded:
            window.addToolBar(Qt.ToolBarArea.RightToolBarArea, self._strip)
            self._move_shortcuts(self._panel, window)
            self._docking.is_folding = self._reading.is_on
            self.is_folded = True
            home.hide()
            self._docking.is_folding = False
        self._strip.setVisible(not self.is_alone)
        self._reading.line.show_notice(*self._message)

    def unfold(self) -> None:
        """Show the panel again."""
        if self.is_folded and self._docking.home is not None:
            self._docking.home.show()  # Other changes follow, as after napari's Window menu.

    def _follow_panel(self) -> None:
        if not self.is_folded:
            return
        self.is_folded = self.is_alone = False
        window = self._panel.window()
        self._move_shortcuts(window, self._panel)
        if isinstance(window, QMainWindow):
            window.removeToolBar(self._strip)
        self._strip.setParent(self._panel)
        self._strip.hide()
        self._reading.line.show_notice(Level.HINT, "")

    def _move_shortcuts(self, before: QWidget, after: QWidget) -> None:
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        for shortcut in before.findChildren(QShortcut, "mamamia_key", direct):
            shortcut.setParent(after)

    def _keep_message(self, level: Level, text: str) -> None:
        self._message = (level, text)
        if self.is_folded:
            self._reading.line.show_notice(level, text)


class WorkListRoom(WindowPart):
    """A component that lets the work list fill the image area in reading mode without a case.

    The image returns as soon as a case is being opened, so that the canvas is visible and has its
    final size before layers are added. The signal `taken`, which is emitted before the change,
    carries whether the list gets the image area.
    """

    taken = Signal(bool)

    def __init__(
        self, context: WindowContext, docking: Docking, reading: ReadingMode, pages: Steps
    ) -> None:
        super().__init__(context)
        self._docking = docking
        self._reading = reading
        self._pages = pages
        self._picture: QWidget | None = None
        coming = self._session.coming_changed
        for change in (pages.turned, reading.entered, docking.shown, coming):
            change.connect(self._follow_step)
        for change in (reading.leaving, docking.hidden):
            change.connect(self._give_back)

    def _follow_step(self, *_events: object) -> None:
        home: Any = self._docking.home
        # The messages of an import and its first case are shown side by side.
        is_news = self._pages.is_importing and self._session.case is not None
        is_list = self._pages.step == WORK_LIST.name and not is_news
        is_list = is_list and not self._session.is_coming
        is_docked = home is not None and home.isVisible() and not home.isFloating()
        if not (is_list and is_docked and self._reading.is_on):
            self._give_back()
            return
        window = home.window()
        if self._picture is None and isinstance(window, QMainWindow):
            self._picture = window.centralWidget()
            self.taken.emit(True)
            self._picture.hide()

    def _give_back(self) -> None:
        picture, self._picture = self._picture, None
        if picture is not None:
            self.taken.emit(False)
            picture.show()
            self._docking.take_width()


_WIDTH: Final = 340
_MARGIN: Final = 8
_STYLED_MS: Final = 100
"""Time in ms until napari has applied a new font size to the controls (our choice)."""
_RESULTS_SHARE: Final = 0.45
"""Fraction of the window's height for the results; it shows seven teams at 720 pixels."""


class MamamiaDock(ReadingOrder, DockParts):
    """The MAMA-MIA panel; each viewer has one.

    Parameters
    ----------
    napari_viewer
        The viewer, a `ViewerModel`, or napari's proxy of a viewer.
    services
        The calls that the pages make; tests pass fakes.
    is_gradual
        Whether the caller runs the steps in `making`, and pages are inserted by `fill_step_by_step`
        or on request.

    Attributes
    ----------
    making
        The remaining steps that complete the panel, in order.
    """

    def __init__(
        self, napari_viewer: Any, services: Services | None = None, *, is_gradual: bool = False
    ) -> None:
        super().__init__()
        self.is_gradual = is_gradual
        self.setObjectName("mamamia_dock")
        self.viewer = adapter.bare(napari_viewer)
        self.offscreen_parent: QWidget = self
        if is_gradual:
            self.offscreen_parent = QWidget()
            self.destroyed.connect(self.offscreen_parent.deleteLater)
            # At this time the widget has no children that Qt would style again.
            self.setStyleSheet(style_sheet(adapter.theme_colours(self.viewer)))
        adapter.tend_canvas(adapter.main_view(self.viewer))
        draw_writing_once(adapter.main_view(self.viewer))
        draw_smooth_outlines(adapter.main_view(self.viewer), find_line_style)
        late_controls(adapter.main_view(self.viewer), lambda layer: tag_of(layer) is not None)
        self.session = Session(self)
        self.services = guard_services(services or Services(), lambda: self.session.blinding)
        self.notifier = Notifier(self)
        self.jobs = JobRunner(self.notifier, self)
        self.scene = Scene(self.viewer)
        self.context = WindowContext(
            self.session, self.scene, self.jobs, self.services, self.notifier, owner=self
        )
        self.making = [
            *self._part_steps(),
            self._lay_out_lines,
            self._lay_out_pages,
            self._connect_parts,
            self._join_rooms,
        ]
        while self.making and not is_gradual:
            self.making.pop(0)()

    # -------------------------------------------------------------- for others

    @property
    def page(self) -> str:
        """The name of the displayed page."""
        return self.pages.page

    def fill_step_by_step(self) -> None:
        """Create the pages of a docked panel step by step, then fit the panel's size."""
        steps = [step for name in self.pages.still_to_come for step in self.page_steps(name)]
        held = (self.results, *self.results.pages)
        steps += [partial(self._leave_offscreen_parent, widget) for widget in held]
        self.docking.is_filling = True
        EventLoopSteps(self).start(
            [*steps, self.docking.end_filling, self._end_offscreen_parent, self._report_plugins]
        )

    def _leave_offscreen_parent(self, widget: QWidget) -> None:
        if widget.parent() is self.offscreen_parent:
            widget.setParent(self)
            widget.hide()

    def _end_offscreen_parent(self) -> None:
        if self.offscreen_parent is not self:
            direct = Qt.FindChildOption.FindDirectChildrenOnly
            for widget in self.offscreen_parent.findChildren(QWidget, options=direct):
                self._leave_offscreen_parent(widget)
            self.offscreen_parent.deleteLater()
            self.offscreen_parent = self

    def _report_plugins(self) -> None:
        if problems := list_problems():
            self.notifier.warn("\n".join(problem.text for problem in problems))

    def open_data_set(self, path: Path, case_id: str | None = None) -> None:
        """Open a data set and, if given, one of its cases."""
        self.cases_flow.open_data_set(path, case_id)

    def import_dicom(self, source: Path) -> None:
        """Show the contents of a DICOM folder or zip file, to import cases from it."""
        self.import_flow.look(source)

    def show_results(self, name: str) -> None:
        """Show a tab of the results below the image, if a feature provides this tab."""
        self.results.show_extra(name)
        self.docking.make_room(_RESULTS_SHARE)
        self.bottom.show_step_by_step(_RESULTS_SHARE)

    def predict(self) -> None:
        """Show the Predict page and start, if a case is open and nothing is hidden."""
        self.show_page("Predict")
        if not self.blind.why_shut("Predict"):
            self.predict_flow.start(None)

    def close_down(self) -> bool:
        """Save changes and stop all jobs when the window closes; return False if saving failed."""
        # This comes first, because stopping all jobs would stop a running save.
        all_saved = self.editing.save_now()
        for call_on_close in self.on_close:
            call_on_close()
        self.kinetics.findings.close()
        self.measuring.close()
        self.opening.ahead.stop()
        self.jobs.cancel_all()
        for turns in (
            *self.findChildren(EventLoopSteps),
            *self.results.findChildren(EventLoopSteps),
        ):
            turns.start([])
        self._end_offscreen_parent()
        self.predict_flow.close()
        self.planes.close()
        self.scene.stack.spares.close()
        self.scene.cool_down()
        # If the mask is not saved, the window stays open once, and the journal is still written.
        if all_saved or self.docking.was_warned:
            self.editing.close()
        return all_saved

    def _lay_out_lines(self) -> None:
        self.legend = AgreementLegend(self.viewer, self)
        self.legend.follow_map()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_MARGIN, _MARGIN // 4, _MARGIN, _MARGIN // 4)
        layout.setSpacing(6)
        self._top = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        layout.addLayout(self._top)
        for line in (self.header, self.hanging.bar, self.pages.bar):
            self._top.addWidget(line)
        self.header.spare(self.pages.bar)
        self.setMinimumWidth(_WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def _lay_out_pages(self) -> None:
        layout: Any = self.layout()
        layout.addWidget(self.pages.stack, stretch=1)
        self.step_flow = StepFlow(self.context, self.header, self.pages, self.opening, self._top)

    def _join_rooms(self) -> None:
        if adapter.main_view(self.viewer) is not None and not self.is_gradual:
            # This is done while the window starts, because later Qt would style new widgets in
            # one iteration of 0.3 s.
            self.pages.make_pages()
        rooms = self.case_line, self, self.results
        self.focus_ring = FocusRing(*rooms)
        self.key_passing = KeyPassing(self.keys, *rooms)
        self.guards = (PressGuard(self, self.case_line, self.results), TypingGuard(self))
        for guard in self.guards:
            guard.begin()
            self.on_close.append(guard.end)
        join_rooms(*rooms)
        self._dress_panel()
        self.viewer.events.theme.connect(self._dress_panel)
        adapter.watch_font(self._dress_panel)
        self.layer_watch.adopt_later()

    def _connect_window(self) -> None:
        self.case_line = CaseLine(self.header, self.hanging.bar)
        self.reading = ReadingMode(self.context, self.case_line, self)
        width = lambda: self.pages.width + 2 * _MARGIN  # noqa: E731
        self.bottom.list_width = width
        self.docking = Docking(self.context, self, width, self.header.case, self.close_down)
        self.pages.filled.connect(lambda width: self.docking.widen(width + 2 * _MARGIN))
        self.fold = PanelFold(self.context, self, self.docking, self.reading)
        self.fold.follow_results(self.bottom)
        self.keys.elsewhere.append(self.case_line)
        self.dropping.watch_part(self.case_line)
        self.room = WorkListRoom(self.context, self.docking, self.reading, self.pages)
        self._is_list = False
        for follow in (self._give_room, self.bottom.follow_list):
            self.room.taken.connect(follow)
        self.results.seen.connect(self._share_room)
        self.case_line.turn_off_wanted.connect(self.active_tool.turn_off)
        self.case_line.own_view_wanted.connect(self.hanging.leave)
        self.active_tool.changed.connect(
            lambda: self.case_line.show_tool_name(self.active_tool.tool)
        )
        self.results.fold_wanted.connect(self.docking.give_room_back)
        self.docking.shown.connect(self.dropping.watch_view)
        self.docking.closed.connect(self.reading.leave)
        self.reading.entering.connect(self.docking.give_room_back)
        self.reading.leaving.connect(self.docking.fit_later)
        self.docking.hidden.connect(self.active_tool.turn_off)
        self.docking.closed.connect(self._put_aside)
        self.docking.window_came.connect(self.refresh.look)
        self.docking.window_resized.connect(self._follow_window)
        self.docking.window_came.connect(self.measuring.record.read)

    def _connect_parts(self) -> None:
        self._connect_window()
        self.pages.turned.connect(self._follow_page)
        self.pages.turned.connect(self.refresh.look)
        self.active_tool.page_wanted.connect(self.show_page)
        self.tools.signs.problem_changed.connect(self.header.set_refusal)
        self.projecting.changed.connect(self.tools.aim.look)
        self.predict_page.grow_wanted.connect(self._grow_candidate)
        self._connect_header()
        self._connect_review()
        self._connect_import()
        self._connect_many()
        self.opening.case_shown.connect(self._focus_image)
        self.opening.case_shown.connect(self.accepting.begin_look)
        # napari measures their size again at each range, and the masks of the old case are
        # removed later.
        for signal in (self.opening.case_shown, self.viewer.dims.events.range):
            signal.connect(self._fit_sliders)
        for follow in (self.header_flow.show, self.kinetics.flow.refresh):
            self.opening.mask_shown.connect(follow)
        adapter.watch_font(self._fit_sliders)
        adapter.watch_font(self._follow_font)
        self.header.name_keys = self.keys.rename
        self.keys.bind(self._list_actions())
        for follow_keys in (self.refine_flow.set_keys, self.pages.set_keys):
            self.keys.changed.connect(follow_keys)

    def _connect_header(self) -> None:
        header = self.header
        header.previous_wanted.connect(lambda: self.cases_flow.open_neighbour(-1))
        header.next_wanted.connect(lambda: self.cases_flow.open_neighbour(1))
        self.pages.go_on_wanted.connect(header.next_wanted.emit)
        header.lesion_wanted.connect(self.jumping.to_lesion)
        header.mask_toggled.connect(self.kinetics.flow.refresh)
        header.keys_wanted.connect(self.pages.toggle_keys)
        header.napari_wanted.connect(self.reading.toggle)

    def _connect_import(self) -> None:
        self.cases_page.import_wanted.connect(self.pages.show_import)
        self.cases_page.folder_chosen.connect(lambda path: self.dropping.open_sources([path]))
        self.listing.dicom_refused.connect(self.import_dicom)
        self.cases_page.protocol_wanted.connect(self.protocols.ask)
        self.dropping.cases_wanted.connect(lambda: self.show_page("Cases"))
        self.dropping.dicom_dropped.connect(self.import_dicom)
        self.cases_flow.folder_recognised.connect(lambda opener, path: opener.open(self, path))

    def _connect_many(self) -> None:
        page = self.cases_page
        page.predict_wanted.connect(self.predict_flow.all.start)
        self.follow_results_button(page.leaderboard, page.leaderboard_wanted, "Leaderboard")
        page.page_wanted.connect(self.show_page)

    def _connect_review(self) -> None:
        self.score_page.batch_wanted.connect(lambda: self.show_page("Batch scoring"))
        self.events.added.connect(self.results.log.add)
        self.reviewing.changed.connect(self.legend.show_text)
        self.results_review.picture_wanted.connect(self.step_flow.begin_case)

    def _list_actions(self) -> dict[str, Callable[..., object]]:
        actions: dict[str, Callable[..., object]] = {
            "kinetic_map": self.kinetics.map.toggle,
            "lesion": self.jumping.to_lesion_or_error,
            "previous_error": self.jumping.to_previous_error,
            "next_case": lambda: self.cases_flow.open_neighbour(1),
            "previous_case": lambda: self.cases_flow.open_neighbour(-1),
            "keys": self.pages.toggle_keys,
            "reading": self.reading.toggle,
        }
        flows: tuple[Any, ...] = (self.step_flow, self.kinetics.findings, self.view_flow)
        flows = (*flows, self.hanging, self.accepting)
        for flow in (*flows, self.refine_flow, self.measuring, self.fold, self.wheel):
            actions |= flow.actions()
        for step in ("work_list", "read", "mask", "check", "keys"):
            actions[step] = partial(self._show_unfolded, actions[step])
        drop = actions["drop_stroke"]

        def escape() -> None:
            if not (self._come_back() or drop()):
                self._close_panel()

        actions["drop_stroke"] = escape
        return actions

    # ----------------------------------------------------------------- actions

    def _fit_sliders(self, _event: object = None) -> None:
        fit_slider_texts(adapter.main_view(self.viewer))

    def _focus_image(self) -> None:
        # Keyboard users keep the focus there, and typed text stays in its field.
        if not self.results.has_keyboard() and not is_typing():
            adapter.focus_canvas(self.viewer)

    def _show_unfolded(self, act: Callable[[], object]) -> None:
        self.fold.unfold()
        act()

    def _come_back(self) -> bool:
        is_due = self.fold.is_alone and self.active_tool.tool is None
        if is_due:
            self.fold.unfold()
        return is_due

    def _close_panel(self) -> None:
        if self.pages.shows_keys:
            self.pages.toggle_keys()
        elif self.bottom.is_shown:
            self.bottom.fold()

    def _give_room(self, is_list: bool) -> None:
        self._is_list = is_list
        self.header.show_image_controls(not is_list)
        self.step_flow.follow_picture(not is_list)
        self._set_wide(is_list)

    def _share_room(self, has_results: bool) -> None:
        if self._is_list:
            self._set_wide(True)  # This is the width for which it is measured.
            lines = (self._top.minimumSize(), self.cases_page.minimumSizeHint())
            needed = max(line.width() for line in lines) + 2 * _MARGIN
            room = self.bottom.share_left * self.window().width()
            self._set_wide(not has_results or needed <= room)

    def _follow_font(self, _event: object = None) -> None:
        call_later(self, self._follow_window, after_ms=_STYLED_MS)

    def _follow_window(self) -> None:
        self._share_room(self.bottom.is_shown)
        self.bottom.follow_width()

    def _set_wide(self, is_wide: bool) -> None:
        ways = QBoxLayout.Direction
        self._top.setDirection(ways.RightToLeft if is_wide else ways.TopToBottom)
        self._top.setStretchFactor(self.header, 1 if is_wide else 0)
        self.cases_page.set_wide(is_wide)
        self.layout().activate()  # Otherwise the dock's width would depend on the previous lines.

    def _put_aside(self) -> None:
        self.active_tool.turn_off()
        self.editing.save_if_needed(lambda _saved: None)

    def _grow_candidate(self) -> None:
        self.show_page("Refine")
        self.refine_flow.grow_prediction()

    def _follow_page(self, page: str) -> None:
        self.active_tool.follow_page(page)
        self.score_flow.scoring.want(page == "Score" and not self.blind.why_shut(page))
        self.kinetics.want(page)
        if page == "Cases":
            self.cases_page.take_keyboard()
        if page == "Report":
            self.report_flow.look()
        self.hanging.bar.want(self.pages.step == "Read")

    # --------------------------------------------------------------- window

    def _dress_panel(self, _event: object = None) -> None:
        theme = adapter.theme_colours(self.viewer)
        rules = style_sheet(theme)
        if self.styleSheet() != rules:
            self.setStyleSheet(rules)
        self.results.setStyleSheet(rules)
        self.case_line.setStyleSheet(rules)
        self.header.dress(theme.text)
        self.focus_ring.set_colour(theme.text)
