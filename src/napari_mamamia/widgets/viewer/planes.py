"""Several views of the open case in one window: three planes, or two phases.

The main view is napari's own view. Each additional view is a `Pane` on the same arrays, and
plane_links.py synchronises the views.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.hanging import HangingStep, PhaseRoles
from napari_mamamia.widgets.adapter.adapter import canvas_widget
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.pane import Pane, PaneKind
from napari_mamamia.widgets.viewer.pane_sides import LEFT, OTHER, RIGHT, Sides, turned_camera
from napari_mamamia.widgets.viewer.pane_window import (
    PRIOR_PLACE,
    PanePlace,
    PaneWindow,
    list_places,
)
from napari_mamamia.widgets.viewer.plane_links import PlaneLinks

_SHARES: Final = {HangingStep.BOTH: 55}
_IDLE_MS: Final = 400
"""Delay in ms before the views of a next step are created."""
_ALL_PLANES: Final = ("axial", "sagittal", "coronal")


class Layout(StrEnum):
    """The number and type of views."""

    ONE = "one plane"
    PLANES = "three planes"
    PHASES = "two phases"
    HUNG = "hung"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The additional views of a hanging step, and the main view's fraction of the space.

    `half` is the breast in the main view, or "" for both breasts. `share` is the main view's
    percentage of the space. `is_stacked` places the additional views below the main view.
    """

    name: str
    kinds: tuple[PaneKind, ...] = ()
    half: str = ""
    share: int = 50
    is_stacked: bool = False


def arrange(
    step: HangingStep, roles: PhaseRoles, plane: str, share: int | None, *, neurological: bool
) -> Arrangement:
    """Return the views of a hanging step for a case displayed in `plane`.

    In a sagittal case, the main view already shows one breast. The additional views show the slice
    at the same distance on the other side.
    """
    main, other = (LEFT, RIGHT) if neurological else (RIGHT, LEFT)
    is_sagittal = plane == "sagittal"
    room = share or _SHARES.get(step, 50)
    first = roles.first or 0
    if step is HangingStep.BOTH and is_sagittal:
        kinds = (PaneKind("axial"), PaneKind("sagittal", side=OTHER))
        return Arrangement(step, kinds, share=room)
    if step is HangingStep.BOTH:
        sides = (PaneKind("sagittal", side=side) for side in (main, other))
        return Arrangement(step, tuple(sides), share=room, is_stacked=True)
    if step is HangingStep.SIDES:
        half = "" if is_sagittal else main
        opposite = OTHER if is_sagittal else other
        below = PaneKind(phase=first, side=half, is_below=True)
        facing = partial(PaneKind, side=opposite, is_mirrored=not is_sagittal)
        views = (below, facing(phase=roles.pre), facing(phase=first))
        return Arrangement(step, views, half=half, share=room)
    if step is HangingStep.LATE:
        return Arrangement(step, (PaneKind(phase=roles.late),), share=room)
    if step is HangingStep.PRIOR:
        return Arrangement(step, (PaneKind(is_prior=True),), share=room)
    return Arrangement(step)


class Planes(WindowPart):
    """A component that shows the additional views.

    A view stays in the window, hidden, until a later step needs the view again. The signal
    `layout_changed` carries the displayed layout; `built` reports that its views are shown.

    Attributes
    ----------
    links
        Position, phase and zoom, shared by all views.
    panes
        The additional views; always the same list, which is filled and emptied.
    on_leave, on_close
        Callbacks before views are hidden, and before views are removed.
    arrangement
        The views in the layout HUNG.
    """

    layout_changed = Signal(object)
    built = Signal()

    def __init__(self, context: WindowContext, text: CanvasText) -> None:
        super().__init__(context)
        self._text = text
        self.window = PaneWindow(self._scene.viewer)
        self.on_leave: list[Callable[[], None]] = []
        self.on_close: list[Callable[[], None]] = []
        self.layout = Layout.ONE
        self.wanted = Layout.ONE
        self.sides = Sides()
        self.panes: list[Pane] = []
        self.links = PlaneLinks(self._scene, self.window, self.panes)
        self.links.setParent(self)
        self.second_phase = 0
        self.arrangement = Arrangement("")
        self._make_prior: Callable[[PaneKind], Pane] | None = None
        self._pool: dict[PanePlace, Pane] = {}
        self._steps: list[Callable[[], None]] = []
        self._made_for: list[PaneKind] = []
        self._unfinished: Pane | None = None
        self._known: Any | None = None
        self._sizes: dict[Layout, list[int]] = {}
        self._next_kinds: tuple[PaneKind, ...] = ()
        self._idle = QTimer(self)
        self._idle.setSingleShot(True)
        self._idle.setInterval(_IDLE_MS)
        self._idle.timeout.connect(self._prepare_views)
        self._build = QTimer(self)
        self._build.setInterval(0)
        self._build.timeout.connect(self._build_next)
        self._session.case_changed.connect(self._on_case)
        self._session.phases_changed.connect(self._name_all)
        self._scene.viewer.canvas.events.size.connect(self._fit_alone)

    def views(self) -> list[Any]:
        """All views of the case, with the main view first."""
        panes = (pane.model for pane in self.panes if not pane.kind.is_prior)
        return [self._scene.viewer, *panes]

    # ---------------------------------------------------------------- layouts

    @property
    def is_building(self) -> bool:
        """Whether views are still being created."""
        return bool(self._steps)

    def toggle_planes(self) -> None:
        """Switch between one plane and three planes."""
        self.set_layout(Layout.ONE if self.wanted is Layout.PLANES else Layout.PLANES)

    def toggle_phases(self) -> None:
        """Switch between one view and two phases side by side."""
        self.set_layout(Layout.ONE if self.wanted is Layout.PHASES else Layout.PHASES)

    def set_layout(self, layout: Layout) -> None:
        """Show one view, three planes or two phases, also for the following cases.

        A case that does not allow the layout is shown in one view, with a message.
        """
        self.wanted = layout
        if layout is not Layout.HUNG:
            self._show_half("")
        self._arrange_views()

    def hang(self, arrangement: Arrangement) -> None:
        """Show the views of a hanging step until `set_layout` is called."""
        if self.layout is Layout.HUNG:
            self._leave_views()
        self.arrangement = arrangement
        self._show_half(arrangement.half)
        self.set_layout(Layout.HUNG)

    def prepare(self, kinds: Sequence[PaneKind]) -> None:
        """Create the views that the next step shows, after some time without other activity."""
        self._next_kinds = tuple(kinds)
        self._idle.start()

    def _prepare_views(self) -> None:
        if self._scene.grid is None or self.is_building:
            return
        for kind, place in zip(self._next_kinds, list_places(self._next_kinds), strict=True):
            if place not in self._pool and not kind.is_prior:
                frame = partial(self.window.prepare_frame, place)
                self._steps += [frame, *self._steps_for(kind, place)]
        if self._steps:
            self._build.start()

    def set_prior(self, make: Callable[[PaneKind], Pane] | None) -> None:
        """Set the function that creates a prior exam's view, and remove the previous view."""
        self._make_prior = make
        pane = self._pool.pop(PRIOR_PLACE, None)
        if pane is None:
            return
        if pane in self.panes:
            self._leave_views()
        pane.close()
        self.window.drop(pane)

    @property
    def share(self) -> int | None:
        """The main view's percentage of the space, or None if the user has not changed it."""
        return self.window.sizes[0] if self.panes and self.window.sizes else None

    def _show_half(self, half: str) -> None:
        self._text.name_side = lambda: half
        if half != self._scene.view.half:
            self._scene.view.half = half
            self._scene.view.fit()
            self._text.update()

    def set_second_phase(self, phase: int) -> None:
        """Set the phase in the second of two views."""
        self.second_phase = phase
        if self.layout is Layout.PHASES:
            self._leave_views()
            self._arrange_views()

    def set_sides(self, sides: Sides) -> None:
        """Set whether the patient's right is on the left (radiological) or right of the screen."""
        self.sides = sides
        self._turn_all()

    def canvas(self, viewer: Any) -> QWidget | None:
        """Return the widget of the main view or an additional view."""
        for pane in self.panes:
            if pane.model is viewer:
                return self.window.canvas(pane)
        return canvas_widget(self._scene.viewer)

    def close(self) -> None:
        """Remove the additional views when the window closes."""
        self._scene.viewer.canvas.events.size.disconnect(self._fit_alone)
        self.links.stop()
        self._leave_views()
        for leave in self.on_close:
            leave()
        for pane in self._pool.values():
            pane.close()
        self._pool.clear()
        self.window.close()

    def _arrange_views(self) -> None:
        grid = self._scene.grid
        layout = self.wanted
        problem = "" if grid is None else self._find_problem(layout, grid)
        if problem:
            self._notifier.hint(problem)
        if grid is None or problem:
            layout = Layout.ONE
        if layout is self.layout:
            return
        self._leave_views()
        self.layout = layout
        self._made_for = self._list_kinds()
        places = list_places(self._made_for)
        self._park_panes(places)
        steps: list[Callable[[], None]] = []
        for kind, place in zip(self._made_for, places, strict=True):
            if place not in self._pool:
                steps += self._steps_for(kind, place)
            steps.append(partial(self._resume_pane, kind, place))
        if steps:
            self._name_main()
            self._show_frames(places)
            if not self._scene.view.is_zoomed_in:
                self._scene.view.fit()  # before it is drawn in its new size
            self.links.take_place_of_main()
            fit = [self.links.spread, self._fit_views]
            shows = [partial(self._show_view, place) for place in places]
            self._steps = [*steps, *fit, *shows, self._settle_views]
            self._build.start()
        else:
            self.window.clear()
            self.links.fit_later_()
        self.layout_changed.emit(layout)

    def _fit_alone(self, _event: object = None) -> None:
        """Fit a single view again when its canvas changes; several views are fitted elsewhere.

        The first case is shown before its canvas has the final size, and the curve below a hanging
        step may be hidden after the next step is shown.
        """
        is_hung = self.layout is Layout.HUNG
        if not self._made_for and (is_hung or self._scene.view.is_as_fitted):
            self.links.fit_later_()

    def _find_problem(self, layout: Layout, grid: Grid) -> str:
        case = self._session.case_id or tr("This case")
        if layout is Layout.PLANES and min(grid.shape) < 2:
            return tr(
                "{case} has only one slice, which would be a line in the other planes, so only "
                "one plane is shown.",
                case=case,
            )
        layer = self._scene.layer(Role.PHASE)
        if layout is Layout.PHASES and (layer is None or layer.data.shape[0] < 2):
            return tr("{case} has only one phase, so there is no second phase to show.", case=case)
        return ""

    def _list_kinds(self) -> list[PaneKind]:
        grid = self._scene.grid
        if grid is None or self.layout is Layout.ONE:
            return []
        if self.layout is Layout.HUNG:
            return list(self.arrangement.kinds)
        if self.layout is Layout.PHASES:
            return [PaneKind(phase=self.second_phase)]
        main_plane = grid.display_frame().plane
        return [PaneKind(plane) for plane in _ALL_PLANES if plane != main_plane]

    def _steps_for(self, kind: PaneKind, place: PanePlace) -> list[Callable[[], None]]:
        """Return the steps that create one view, one step per event-loop iteration.

        The view is registered when it has all its layers; the last steps handle layers that were
        added or removed in the meantime.
        """
        make = self._make_prior
        pane: Callable[[], Pane] = partial(Pane, self._scene, kind, filled=False)
        if kind.is_prior and make is not None:
            pane = partial(make, kind)
        copies = [self._copy_layer] * len(self._scene.stack.find())
        return [
            partial(self._begin_pane, pane, place),
            self._make_texts,
            *copies,
            partial(self._finish_pane, place),
        ]

    def _begin_pane(self, make: Callable[[], Pane], place: PanePlace) -> None:
        self._unfinished = make()
        self.window.add(self._unfinished, place)

    def _make_texts(self) -> None:
        if self._unfinished is not None:
            self._steps = [*self._unfinished.text.make_steps(), *self._steps]

    def _copy_layer(self) -> None:
        if self._unfinished is not None:
            self._unfinished.copies.copy_next()

    def _finish_pane(self, place: PanePlace) -> None:
        pane, self._unfinished = self._unfinished, None
        if pane is not None:
            self._pool[place] = pane
            self.links.link(pane)

    def _resume_pane(self, kind: PaneKind, place: PanePlace) -> None:
        pane, position = self._pool.get(place), self.links.find_shown_place()
        if pane is not None and position is not None:
            pane.resume(kind, self.sides, position, self._scene.phase)
            self.panes.append(pane)
            self.links.set_brushes(pane)
            self.window.measure(pane)

    def _fit_views(self) -> None:
        """Fit all views to their frames before the views are shown, so that each is drawn once."""
        for pane in self.panes:
            pane.text.follow_zoom()
        self.links.fit_now()

    def _show_view(self, place: PanePlace) -> None:
        self.window.show(self._pool[place])

    def _build_next(self) -> None:
        if self._steps:
            self._steps.pop(0)()
        if not self._steps:
            self._build.stop()

    def _show_frames(self, places: Sequence[PanePlace]) -> None:
        if self.layout is Layout.HUNG:
            hung = self.arrangement
            sizes, stacked = [hung.share, 100 - hung.share], hung.is_stacked
            self.window.show_frames(places, equal=True, sizes=sizes, stacked=stacked)
        else:
            sizes_now = self._sizes.get(self.layout)
            self.window.show_frames(places, equal=self.layout is Layout.PHASES, sizes=sizes_now)

    def _name_main(self) -> None:
        self._text.name_plane(self.layout in (Layout.PLANES, Layout.HUNG))

    def _settle_views(self) -> None:
        self.window.settle()
        self._text.follow_zoom()
        self.links.fit_later_()
        self.built.emit()

    def _park_panes(self, places: Sequence[PanePlace] = ()) -> None:
        for place, pane in self._pool.items():
            if place not in places:
                pane.park()

    def _leave_views(self) -> None:
        self._build.stop()
        self._idle.stop()
        self._steps, self._made_for = [], []
        if self._unfinished is not None:
            self.window.drop(self._unfinished)
            self._unfinished.close()
            self._unfinished = None
        for leave in self.on_leave if self.panes else ():
            leave()
        if self.panes and self.window.sizes:
            self._sizes[self.layout] = self.window.sizes
        for pane in self.panes:
            self.window.hide(pane)
        self.panes.clear()
        self.layout = Layout.ONE
        self._text.name_plane(False)

    # ------------------------------------------------------------------- case

    def _on_case(self) -> None:
        grid = self._scene.grid
        if grid is None or self._session.case is None:
            self._leave_views()
            self._park_panes()
            self.window.clear()
            self._known = None
            return
        # The same array: the open case now has all its phases, nothing else changed.
        if self._session.case.signal is self._known:
            return
        self._known = self._session.case.signal
        kinds = self._list_kinds()
        fits = not self._find_problem(self.wanted, grid) and self.layout is self.wanted
        if not fits or self._made_for != kinds:
            self._leave_views()
            self._arrange_views()
        self._turn_all()
        self.links.take_place_of_main()
        self.links.spread()
        self.links.fit_later_()

    def _turn_all(self) -> None:
        grid = self._scene.grid
        if grid is None:
            return
        camera = self._scene.viewer.scene.camera
        orientation = turned_camera(grid, (0, 1, 2), (False, False, False), self.sides)
        if tuple(str(way) for way in camera.orientation2d) != orientation:
            camera.orientation2d = orientation
        for pane in self.panes:
            pane.turn(self.sides)

    def _name_all(self) -> None:
        for pane in self.panes:
            pane.text.update()
