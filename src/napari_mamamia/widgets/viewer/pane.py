"""One further view of the open case beside the main one: another plane, or another phase."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from napari.components import ViewerModel

from napari_mamamia.core.grid import Grid, Plane
from napari_mamamia.widgets.adapter.drawing import sliced_once
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.pane_layers import LayerCopies
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel

__all__ = ["Pane", "PaneKind", "Sides", "turned_camera"]

_AXES: Final = 3
_ONE_PHASE_LACKS: Final = frozenset({Role.SUBTRACTION, Role.MAP, Role.PROJECTION})


@dataclass(frozen=True, slots=True)
class PaneKind:
    """What a further view shows: a plane and a phase, None for those of the main view."""

    plane: Plane | None = None
    phase: int | None = None


@dataclass(frozen=True, slots=True)
class Sides:
    """Which side of the screen the patient's right is on: the left in the radiological way."""

    neurological: bool = False


def turned_camera(
    grid: Grid, turn: Sequence[int], against: Sequence[bool], sides: Sides
) -> tuple[str, str]:
    """Return which way the camera shows the rows and the columns of a plane.

    Parameters
    ----------
    grid
        The case's grid.
    turn, against
        As `DisplayFrame.within` returns them.
    sides
        A row that runs between right and left is shown the other way in the neurological one.

    Examples
    --------
    >>> import numpy as np
    >>> grid = Grid((2, 3, 4), np.diag([-1.0, 1.0, 2.0, 1.0]))
    >>> turned_camera(grid, (0, 1, 2), (False, False, False), Sides(neurological=True))
    ('down', 'left')
    """
    letter = grid.orientation[2 - grid.display_frame().order[turn[2]]]
    mirrored = sides.neurological and letter in "RL"
    return "up" if against[1] else "down", "left" if against[2] != mirrored else "right"


class Pane:
    """A `ViewerModel` whose layers share the arrays of the scene's.

    Parameters
    ----------
    scene
        The main view.
    kind
        What is shown here.
    filled
        Whether its layers and texts are there at once; else ``copies.copy_next`` and
        ``text.make_steps`` make one of them, and `fill` the rest.

    Attributes
    ----------
    model
        The view, for a `QtViewer`; it works without one.
    """

    def __init__(self, scene: Scene, kind: PaneKind, *, filled: bool = True) -> None:
        self.kind = kind
        self._scene = scene
        self.model: Any = ViewerModel()
        left_out = frozenset() if kind.phase is None else _ONE_PHASE_LACKS
        self.copies = LayerCopies(scene.viewer, self.model, left_out, filled=filled)
        self.text = CanvasText(scene, self.model, names_phase=kind.phase is not None)
        self.text.is_held = not filled
        self.whole_zoom = 1.0

    def fill(self) -> None:
        """Have all layers and texts from now on."""
        self.copies.fill()
        self.text.is_held = False
        self.text.update()

    def close(self) -> None:
        """Let go of everything; the main view stays."""
        self.text.close()
        self.copies.close()

    def turn(self, sides: Sides) -> None:
        """Show the plane of this view for the grid of the case that is open now."""
        grid, dims = self._scene.grid, self.model.dims
        if grid is None or dims.ndim < _AXES:
            return
        lead = dims.ndim - _AXES
        turn, against = grid.display_frame(self.kind.plane).within(grid.display_frame())
        order = (*range(lead), *(lead + axis for axis in turn))
        if tuple(dims.order) != order:
            dims.order = order
        self.model.scene.camera.orientation2d = turned_camera(grid, turn, against, sides)
        self.text.update()

    def fit(self) -> None:
        """Show the whole plane."""
        if len(self.model.layers):
            self.model.reset_view()
            self.whole_zoom = float(self.model.scene.camera.zoom)

    @property
    def slice_axis(self) -> int:
        """Which axis of the main view (0 slice, 1 row, 2 column) runs through these slices."""
        dims = self.model.dims
        lead = dims.ndim - _AXES
        hidden = [axis - lead for axis in dims.not_displayed if axis >= lead]
        return hidden[0] if len(hidden) == 1 else -1

    def show(self, shown: Sequence[int], phase: int | None) -> None:
        """Show the slice through `shown` (slice, row, column of the main view), at `phase`.

        Only the axes that are not on screen are set: napari slices anew for the others too.
        """
        dims = self.model.dims
        lead = dims.ndim - _AXES
        axes, steps = [], []
        phase = self.kind.phase if self.kind.phase is not None else phase
        if lead == 1 and phase is not None:
            axes.append(0)
            steps.append(phase)
        if self.slice_axis >= 0:
            axes.append(lead + self.slice_axis)
            steps.append(shown[self.slice_axis])
        if any(dims.current_step[a] != s for a, s in zip(axes, steps, strict=True)):
            with sliced_once(self.model):
                dims.set_current_step(axes, steps)
        if axes:
            dims.last_used = axes[-1]

    def centre(self, voxel: Voxel) -> None:
        """Bring a voxel (z, y, x) to the middle."""
        grid = self._scene.grid
        if grid is not None:
            frame = grid.display_frame()
            shown = frame.point_to_display(voxel, grid.shape)
            spacing = frame.per_axis(grid.spacing_mm)
            dims = self.model.dims
            lead = dims.ndim - _AXES
            centre = [shown[axis - lead] * spacing[axis - lead] for axis in dims.displayed]
            self.model.scene.camera.center = centre
