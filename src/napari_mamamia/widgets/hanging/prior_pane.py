"""A view of a prior exam next to the open case, at the same position in mm and scale."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from napari.components import ViewerModel

from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.hanging import find_roles
from napari_mamamia.services.case.prior import (
    PriorExam,
    PriorLink,
    carry_place,
    is_inside,
    link_by_frame,
    link_places,
    match_phase,
)
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.contrasting import WindowLevelDrag
from napari_mamamia.widgets.viewer.pane import Pane, PaneKind
from napari_mamamia.widgets.viewer.pane_sides import Sides, turned_camera
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel

_AXES: Final = 3
_STILL_PIXELS: Final = 3.0


class NoCopies:
    """Null object for `LayerCopies`, for a view without layers of the open case."""

    def copy_next(self) -> None:
        """Copy nothing."""

    def fill(self) -> None:
        """Copy no layers."""

    def close(self) -> None:
        """Do nothing; no layer is followed."""

    def set_own(self, _role: Any, _data: Any) -> None:
        """Ignore the data of a role."""

    def redraw(self, _role: Any, _part: Any) -> None:
        """Redraw nothing."""


class PriorPane(Pane):
    """View that shows the phases and the masks of `prior`, read-only.

    Parameters
    ----------
    main
        The open case in the main view.
    kind
        The kind of pane.
    case
        The open case.
    prior
        The prior exam.
    link
        The shift between the exams; None to compute the shift from their frames of reference.
    name
        The text in the corner of the view.
    pick
        Function that moves the cross-hair of the open case to a voxel.

    Attributes
    ----------
    link, is_linked
        The shift between the exams, and whether the exams scroll together. They do so if both exams
        have the same frame of reference, or after a reader has set the shift.
    placed
        Function called after the position was moved in this view alone.
    """

    def __init__(
        self,
        main: Scene,
        kind: PaneKind,
        case: Case,
        prior: PriorExam,
        link: PriorLink | None,
        name: str,
        pick: Callable[[Voxel], None],
    ) -> None:
        self.kind = kind
        self._scene = main
        self._prior, self._exam, self._name, self._case = prior.case, prior, name, case
        self._own_scene = Scene(ViewerModel())
        self.model = self._own_scene.viewer
        self.copies: Any = NoCopies()
        self.text = CanvasText(self._own_scene, self.model)
        self.text.is_held = True
        self.text.name_side = self._name_side
        self.window_level = WindowLevelDrag(self._own_scene)
        self.whole_zoom = 1.0
        self.link = link_by_frame(case, prior.case) if link is None else link
        self.is_linked = self.link.is_known
        self._is_placed = False
        self._is_outside = False
        self._is_closed = False
        self._pick = pick
        self.placed: Callable[[], None] = lambda: None
        self._shown: tuple[int, int, int] = (0, 0, 0)
        self.model.mouse_drag_callbacks.append(self._follow_click)

    def fill(self) -> None:
        """Show the prior exam."""
        if self._own_scene.grid is None:
            masks = [
                (tag_for(self._prior, Role(mask.role), mask.provenance), mask.buffer)
                for mask in self._exam.masks.masks
            ]
            self._own_scene.show_case(self._prior, self._exam.limits, masks)
            self._scene.companions.append(self._own_scene)
        self.text.is_held = False
        self.text.update()

    def park(self) -> None:
        """Stop updating the texts; nothing else changes while the view is hidden."""
        self.text.is_held = True

    def resume(self, kind: PaneKind, sides: Sides, place: Sequence[int], phase: int | None) -> None:
        """Show the prior exam again, at a position of the open case."""
        self.turn(sides)
        self.show(place, phase)

    def close(self) -> None:
        """Disconnect from the main view."""
        self._is_closed = True
        if self._own_scene in self._scene.companions:
            self._scene.companions.remove(self._own_scene)
        self.text.close()

    def turn(self, sides: Sides) -> None:
        """Show the plane of the main view in the same orientation."""
        self.fill()
        grid, open_grid, dims = self._prior.grid, self._scene.grid, self.model.dims
        if open_grid is None or dims.ndim < _AXES:
            return
        plane = open_grid.display_frame().plane
        turn, against = grid.display_frame(plane).within(grid.display_frame())
        lead = dims.ndim - _AXES
        order = (*range(lead), *(lead + axis for axis in turn))
        if tuple(dims.order) != order:
            dims.order = order
        self.model.scene.camera.orientation2d = turned_camera(grid, turn, against, sides)

    def show(self, shown: Sequence[int], phase: int | None) -> None:
        """Show the case's position in mm, and the phase with the same role.

        If the exams are not linked, the position stays unchanged; initially both exams show the
        same scanner coordinates.
        """
        grid, case = self._scene.grid, self._case
        self._shown = (shown[0], shown[1], shown[2])
        if grid is None or self._own_scene.grid is None:
            return
        there = find_roles(self._prior)
        count = len(self._prior.phases)
        other = None if phase is None else match_phase(find_roles(case), phase, there, count)
        position = self._own_place
        if self.is_linked or not self._is_placed:
            self._is_placed = True
            voxel = grid.display_frame().point_from_display(shown, grid.shape)
            carried = carry_place(grid, voxel, self._prior.grid, self.link.offset_mm)
            self._is_outside = not is_inside(self._prior.grid, carried)
            z, y, x = (
                min(max(round(i), 0), n - 1)
                for i, n in zip(carried, self._prior.grid.shape, strict=True)
            )
            position = (z, y, x)
        self._own_scene.view.go_to(position, centre=False, phase=other)
        self.text.update()

    def read_place(self, shown: Sequence[int]) -> tuple[int, int, int] | None:
        """Return the open case's position after a step in this view, or None if not linked."""
        grid = self._scene.grid
        if not self.is_linked or self._is_closed or grid is None:
            return None
        back = [-mm for mm in self.link.offset_mm]
        voxel = carry_place(self._prior.grid, self._own_place, grid, back)
        places = grid.display_frame().point_to_display(voxel, grid.shape)
        counts = grid.display_frame().per_axis(grid.shape)
        across = {axis - (self._scene.viewer.dims.ndim - _AXES) for axis in self._find_hidden()}
        # Only the axis through the slices: rounding must not move the others.
        s, r, c = (
            min(max(round(step), 0), int(n) - 1) if axis in across else here
            for axis, (step, n, here) in enumerate(zip(places, counts, shown, strict=True))
        )
        return s, r, c

    def set_linked(self, linked: bool) -> None:
        """Unlink the exams, or link the exams at their displayed positions."""
        grid = self._scene.grid
        if linked and not self.is_linked and grid is not None:
            voxel = grid.display_frame().point_from_display(self._shown, grid.shape)
            self.link = link_places(grid, voxel, self._prior.grid, self._own_place)
        self.is_linked = linked
        self._is_outside = self._is_outside and linked
        self._is_placed = True
        self.text.update()

    def turn_centre(self, centre: Sequence[float], half: str) -> tuple[float, ...]:
        """Return the centre of this view that corresponds to the centre of the main view."""
        grid = self._scene.grid
        if grid is None or self._own_scene.grid is None:
            return tuple(centre)
        voxel = self._find_middle(grid, centre)
        carried = carry_place(grid, voxel, self._prior.grid, self.link.offset_mm)
        frame = self._prior.grid.display_frame()
        there = frame.point_to_display(carried, self._prior.grid.shape)
        spacing = frame.per_axis(self._prior.grid.spacing_mm)
        dims = self.model.dims
        lead = dims.ndim - _AXES
        return tuple(there[axis - lead] * spacing[axis - lead] for axis in dims.displayed)

    def centre(self, voxel: Any) -> None:
        """Do nothing, because this view only follows the centre of the main view."""

    def find_world(self, world: tuple[float, ...] | None) -> tuple[float, ...] | None:
        """Return the cross-hair position in this exam: the same position in mm, or the click."""
        if world is None or self._own_scene.grid is None or self._is_outside:
            return None
        frame = self._prior.grid.display_frame()
        position = frame.point_to_display(self._own_place, self._prior.grid.shape)
        spacing = frame.per_axis(self._prior.grid.spacing_mm)
        return tuple(i * mm for i, mm in zip(position, spacing, strict=True))

    # ------------------------------------------------------------------- inner

    def _find_middle(self, grid: Grid, centre: Sequence[float]) -> tuple[float, float, float]:
        frame = grid.display_frame()
        spacing = frame.per_axis(grid.spacing_mm)
        dims = self._scene.viewer.dims
        lead = dims.ndim - _AXES
        places = [float(coordinate) for coordinate in self._shown]
        for axis, mm in zip(dims.displayed, centre[-len(dims.displayed) :], strict=True):
            places[axis - lead] = mm / spacing[axis - lead]
        return frame.point_from_display(places, grid.shape)

    def _follow_click(self, _viewer: Any, event: Any) -> Iterator[None]:
        start, position = tuple(event.pos), tuple(event.position)
        if event.button != 1 or event.modifiers:
            return
        yield
        while event.type == "mouse_move":
            yield
        moved = max(abs(a - b) for a, b in zip(event.pos, start, strict=True))
        voxel, grid = self._own_scene.view.voxel_at(position), self._scene.grid
        if moved > _STILL_PIXELS or voxel is None or grid is None:
            return
        if self.is_linked:
            back = [-mm for mm in self.link.offset_mm]
            z, y, x = carry_place(self._prior.grid, voxel, grid, back)
            self._pick((round(z), round(y), round(x)))
        else:
            self._own_scene.view.go_to(voxel, centre=False)
            self.placed()

    def _find_hidden(self) -> list[int]:
        dims = self._scene.viewer.dims
        return [axis for axis in dims.not_displayed if axis >= dims.ndim - _AXES]

    @property
    def _own_place(self) -> tuple[int, int, int]:
        dims, grid = self.model.dims, self._prior.grid
        steps = dims.current_step[dims.ndim - _AXES :]
        z, y, x = grid.display_frame().point_from_display([float(s) for s in steps], grid.shape)
        return round(z), round(y), round(x)

    def _name_side(self) -> str:
        note = tr("outside this exam") if self._is_outside else ""
        free = "" if self.is_linked else tr("not linked")
        return ", ".join(text for text in (self._name, note, free) if text)
