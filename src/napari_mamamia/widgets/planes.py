"""Several linked views of the open case in one window: three planes, or two phases.

The main view stays napari's own. Each further view is a `Pane` on the same arrays; one place in the
patient, and one phase, are shown by all of them.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final

from qtpy.QtCore import QObject, QTimer, Signal
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.canvas import CanvasText
from napari_mamamia.widgets.layers import Role
from napari_mamamia.widgets.napari_adapter import canvas_widget, focus_canvas, layer_scrolling
from napari_mamamia.widgets.notify import Notifier
from napari_mamamia.widgets.pane import Pane, PaneKind, Sides, turned_camera
from napari_mamamia.widgets.pane_window import PaneWindow
from napari_mamamia.widgets.scene import Part, Scene, Voxel
from napari_mamamia.widgets.session import Session

__all__ = ["Layout", "Planes"]

_LEFT: Final = 1
_STILL_PIXELS: Final = 3.0
_FIT_AFTER_MS: Final = 40
_ALL_PLANES: Final = ("axial", "sagittal", "coronal")


class Layout(StrEnum):
    """How many views there are."""

    ONE = "one plane"
    PLANES = "three planes"
    PHASES = "two phases"


class Planes(QObject):
    """Makes the views, links them, and takes them away.

    `layout_changed` carries the layout on screen, `built` says that its views are there,
    `place_changed` carries the voxel (z, y, x) that the
    cross-hair is at.

    Attributes
    ----------
    tools
        Called with the model of each new view, so that the mouse does there what it does in the
        main one.
    farewells
        Called before views are taken away.
    is_free
        Whether a click may move the cross-hair: not while a tool paints.
    """

    layout_changed = Signal(object)
    built = Signal()
    place_changed = Signal(object)

    def __init__(
        self, session: Session, scene: Scene, text: CanvasText, notifier: Notifier
    ) -> None:
        super().__init__()
        self._session = session
        self._scene = scene
        self._text = text
        self._notifier = notifier
        self.window = PaneWindow(scene.viewer)
        self.tools: list[Callable[[Any], None]] = []
        self.farewells: list[Callable[[], None]] = []
        self.is_free: Callable[[], bool] = lambda: True
        self.layout = Layout.ONE
        self.wanted = Layout.ONE
        self.sides = Sides()
        self.panes: list[Pane] = []
        self.place: Voxel = (0, 0, 0)
        self.second_phase = 0
        self._steps: list[Callable[[], None]] = []
        self._before: tuple[int, ...] = ()
        self._known: Any | None = None
        self._is_moving = False
        self._sizes: dict[Layout, list[int]] = {}
        self._fit = QTimer(self)
        self._fit.setSingleShot(True)
        self._fit.setInterval(_FIT_AFTER_MS)
        self._fit.timeout.connect(self._fit_all)
        self._build = QTimer(self)
        self._build.setInterval(0)
        self._build.timeout.connect(self._build_next)
        scene.redrawn.append(self._redraw)
        scene.moved.append(self._look_at)
        viewer = scene.viewer
        viewer.dims.events.current_step.connect(self._on_main_step)
        viewer.scene.camera.events.zoom.connect(self._follow_camera)
        viewer.scene.camera.events.center.connect(self._follow_camera)
        viewer.mouse_drag_callbacks.append(self._click)
        viewer.mouse_move_callbacks.append(self._hover)
        session.case_changed.connect(self._on_case)

    # ---------------------------------------------------------------- layouts

    @property
    def is_building(self) -> bool:
        """Whether views are still being made."""
        return bool(self._steps)

    def toggle_planes(self) -> None:
        """Change between one plane and three."""
        self.set_layout(Layout.ONE if self.wanted is Layout.PLANES else Layout.PLANES)

    def toggle_phases(self) -> None:
        """Change between one view and two phases side by side."""
        self.set_layout(Layout.ONE if self.wanted is Layout.PHASES else Layout.PHASES)

    def set_layout(self, layout: Layout) -> None:
        """Show one view, three planes, or two phases; kept for the next cases.

        A case that cannot be shown so stays in one view, with the reason.
        """
        self.wanted = layout
        self._arrange()

    def set_second_phase(self, phase: int) -> None:
        """Show another phase in the second of two views."""
        self.second_phase = phase
        if self.layout is Layout.PHASES:
            self._take_down()
            self._arrange()

    def set_sides(self, sides: Sides) -> None:
        """Show the patient's right on the left of the screen (radiological) or on the right."""
        self.sides = sides
        self._turn_all()

    def canvas(self, viewer: Any) -> QWidget | None:
        """Return the widget that a view is drawn on, the main one or a further one."""
        for pane in self.panes:
            if pane.model is viewer:
                return self.window.canvas(pane)
        return canvas_widget(self._scene.viewer)

    def close(self) -> None:
        """Take the further views away, because the window closes."""
        self._fit.stop()
        self._take_down()

    def _arrange(self) -> None:
        grid = self._scene.grid
        layout = self.wanted
        problem = "" if grid is None else self._problem(layout, grid)
        if problem:
            self._notifier.hint(problem)
        if grid is None or problem:
            layout = Layout.ONE
        if layout is self.layout:
            return
        self._take_down()
        self.layout = layout
        self._steps = [step for kind in self._kinds() for step in self._steps_for(kind)]
        if self._steps:
            self._steps.append(self._settle)
            self._build.start()
        else:
            self._fit.start()
        self.layout_changed.emit(layout)

    def _problem(self, layout: Layout, grid: Grid) -> str:
        case = self._session.case_id or "This case"
        if layout is Layout.PLANES and min(grid.shape) < 2:
            return f"{case} has a single slice: its other planes are a line, so that one is shown."
        layer = self._scene.layer(Role.PHASE)
        if layout is Layout.PHASES and (layer is None or layer.data.shape[0] < 2):
            return f"{case} has one phase only: there is no second one to show beside it."
        return ""

    def _kinds(self) -> list[PaneKind]:
        grid = self._scene.grid
        if grid is None or self.layout is Layout.ONE:
            return []
        if self.layout is Layout.PHASES:
            return [PaneKind(phase=self.second_phase)]
        own = grid.display_frame().plane
        return [PaneKind(plane) for plane in _ALL_PLANES if plane != own]

    def _steps_for(self, kind: PaneKind) -> list[Callable[[], None]]:
        """Return the steps that make one view: each a turn of the event loop of its own."""

        def model() -> None:
            pane = Pane(self._scene, kind)
            pane.turn(self.sides)
            self.panes.append(pane)

        def view() -> None:
            pane = self.panes[-1]
            self.window.add(pane, kind.plane or f"phase_{kind.phase}")
            pane.text.follow_zoom()
            self._link(pane)

        return [model, view]

    def _build_next(self) -> None:
        if self._steps:
            self._steps.pop(0)()
        if not self._steps:
            self._build.stop()

    def _link(self, pane: Pane) -> None:
        model = pane.model
        model.dims.events.current_step.connect(lambda _event: self._on_pane_step(pane))
        model.canvas.events.size.connect(lambda _event: self._fit.start())
        if self.layout is Layout.PHASES:
            for name in ("zoom", "center"):
                getattr(model.scene.camera.events, name).connect(
                    lambda _event: self._follow_pane(pane)
                )
        for function in layer_scrolling(model):
            model.mouse_wheel_callbacks.remove(function)
        model.mouse_drag_callbacks.append(self._click)
        model.mouse_move_callbacks.append(self._hover)
        for attach in self.tools:
            attach(model)

    def _settle(self) -> None:
        equal = self.layout is Layout.PHASES
        self.window.settle(equal=equal, sizes=self._sizes.get(self.layout))
        self._text.name_plane(self.layout is Layout.PLANES)
        self._take_place_of_main()
        self._spread()
        self._fit.start()
        self.built.emit()

    def _take_down(self) -> None:
        self._build.stop()
        self._steps = []
        for leave in self.farewells if self.panes else ():
            leave()
        if self.panes and self.window.sizes:
            self._sizes[self.layout] = self.window.sizes
        for pane in self.panes:
            pane.close()
        self.panes = []
        self.window.clear()
        self.layout = Layout.ONE
        self._text.name_plane(False)

    # ------------------------------------------------------------------- case

    def _on_case(self) -> None:
        """Show the next case in the wanted layout; its slices may run another way."""
        grid = self._scene.grid
        if grid is None or self._session.case is None:
            self._take_down()
            self._known = None
            return
        if self._session.case.signal is self._known:
            return
        self._known = self._session.case.signal
        kinds = self._kinds()
        fits = not self._problem(self.wanted, grid) and self.layout is self.wanted
        if (not fits or [pane.kind for pane in self.panes] != kinds) and not self._steps:
            self._take_down()
            self._arrange()
        self._turn_all()
        self._take_place_of_main()
        self._spread()
        self._fit.start()

    def _turn_all(self) -> None:
        grid = self._scene.grid
        if grid is None:
            return
        camera = self._scene.viewer.scene.camera
        wanted = turned_camera(grid, (0, 1, 2), (False, False, False), self.sides)
        if tuple(str(way) for way in camera.orientation2d) != wanted:
            camera.orientation2d = wanted
        for pane in self.panes:
            pane.turn(self.sides)

    def _fit_all(self) -> None:
        """Show whole planes, as far as the main view shows its own whole."""
        if not self._scene.is_zoomed_in:
            self._scene.fit()
        if self.layout is Layout.PLANES:
            for pane in self.panes:
                pane.fit()
        self._follow_camera()
        if self._scene.is_zoomed_in and self.layout is Layout.PLANES:
            for pane in self.panes:
                pane.centre(self.place)

    # ------------------------------------------------------------------ place

    def go_to(self, voxel: Voxel) -> None:
        """Show the slices through a voxel (z, y, x) in all views; outside ones are moved inside."""
        grid = self._scene.grid
        if grid is None:
            return
        z, y, x = (min(max(round(i), 0), n - 1) for i, n in zip(voxel, grid.shape, strict=True))
        if (z, y, x) != self.place:
            self.place = (z, y, x)
            self._spread()

    def _look_at(self, voxel: Voxel, centre: bool) -> None:
        """Follow the main view to a place it was sent to."""
        self._before = ()
        self.go_to(voxel)
        if centre and self._scene.is_zoomed_in and self.layout is Layout.PLANES:
            for pane in self.panes:
                pane.centre(self.place)

    def _shown(self) -> tuple[int, int, int] | None:
        """Return the place as the main view counts it: slice, row, column."""
        grid = self._scene.grid
        if grid is None:
            return None
        s, r, c = grid.display_frame().point_to_display(self.place, grid.shape)
        return round(s), round(r), round(c)

    def _spread(self) -> None:
        """Let every view show the place, and the further ones the main one's phase."""
        shown, grid = self._shown(), self._scene.grid
        if shown is None or grid is None or not self.panes:
            self.window.point(None)
            return
        before, self._is_moving = self._is_moving, True
        try:
            self._show_in_main(shown)
            for pane in self.panes:
                pane.show(shown, self._scene.phase)
        finally:
            self._is_moving = before
        spacing = grid.display_frame().per_axis(grid.spacing_mm)
        self.window.point(tuple(i * mm for i, mm in zip(shown, spacing, strict=True)))
        self.place_changed.emit(self.place)

    def _show_in_main(self, shown: tuple[int, int, int]) -> None:
        dims = self._scene.viewer.dims
        lead = dims.ndim - len(shown)
        for axis in dims.not_displayed:
            if axis >= lead and dims.current_step[axis] != shown[axis - lead]:
                dims.set_current_step(axis, shown[axis - lead])
        self._before = tuple(dims.current_step[lead:])

    def _take_place_of_main(self) -> None:
        """Put the cross-hair where the main view's sliders stand."""
        self._before = ()
        self._on_main_step()

    def _on_main_step(self, _event: object = None) -> None:
        """Follow what moved in the main view; the other axes stay where the cross-hair is."""
        grid, dims = self._scene.grid, self._scene.viewer.dims
        if self._is_moving or grid is None or dims.ndim < len(grid.shape):
            return
        now = tuple(dims.current_step[dims.ndim - len(grid.shape) :])
        shown = self._shown()
        if shown is None:
            return
        if not self._before:
            shown = (now[0], now[1], now[2])
        else:
            s, r, c = (
                new if new != old else here
                for new, old, here in zip(now, self._before, shown, strict=True)
            )
            shown = (s, r, c)
        self._before = now
        self._put(shown, grid)

    def _on_pane_step(self, pane: Pane) -> None:
        """Follow a slice step in another view."""
        shown, grid, axis = self._shown(), self._scene.grid, pane.slice_axis
        if self._is_moving or shown is None or grid is None or axis < 0:
            return
        dims = pane.model.dims
        places = list(shown)
        places[axis] = dims.current_step[dims.ndim - len(shown) + axis]
        self._put((places[0], places[1], places[2]), grid)

    def _put(self, shown: tuple[int, int, int], grid: Grid) -> None:
        z, y, x = grid.display_frame().point_from_display(shown, grid.shape)
        self.place = (round(z), round(y), round(x))
        self._spread()

    # ------------------------------------------------------------------ mouse

    def _click(self, _viewer: Any, event: Any) -> Iterator[None]:
        """Move the cross-hair by a click; a drag stays napari's. Ctrl works while a tool is on."""
        if self.panes:
            focus_canvas(self._scene.viewer)
        held = {str(getattr(key, "name", key)) for key in event.modifiers}
        may = held == {"Control"} or (not held and self.is_free())
        if not self.panes or event.button != _LEFT or not may:
            return
        start, position = tuple(event.pos), tuple(event.position)
        yield
        while event.type == "mouse_move":
            yield
        moved = max(abs(a - b) for a, b in zip(event.pos, start, strict=True))
        if moved <= _STILL_PIXELS:
            self._go_to_position(position)

    def _hover(self, _viewer: Any, event: Any) -> None:
        """Let the cross-hair follow the mouse while Shift is held."""
        held = {str(getattr(key, "name", key)) for key in event.modifiers}
        if self.panes and held == {"Shift"} and self.is_free():
            self._go_to_position(tuple(event.position))

    def _go_to_position(self, position: tuple[float, ...]) -> None:
        voxel = self._scene.voxel_at(position)
        if voxel is not None:
            self.go_to(voxel)

    # ------------------------------------------------------------------- view

    def _redraw(self, role: Role, part: Part | None) -> None:
        for pane in self.panes:
            pane.copies.redraw(role, part)

    def _follow_camera(self, _event: object = None) -> None:
        """Zoom the further views as the main one; planes in proportion to what fits them."""
        if self._is_moving or not self.panes:
            return
        before, self._is_moving = self._is_moving, True
        try:
            camera = self._scene.viewer.scene.camera
            for pane in self.panes:
                other = pane.model.scene.camera
                if self.layout is Layout.PHASES:
                    other.center, other.zoom = camera.center, camera.zoom
                else:
                    other.zoom = pane.whole_zoom * self._scene.relative_zoom
        finally:
            self._is_moving = before

    def _follow_pane(self, pane: Pane) -> None:
        if self._is_moving:
            return
        before, self._is_moving = self._is_moving, True
        try:
            camera, other = self._scene.viewer.scene.camera, pane.model.scene.camera
            camera.center, camera.zoom = other.center, other.zoom
        finally:
            self._is_moving = before
