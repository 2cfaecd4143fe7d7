"""The reader's own view, stored before the hanging protocol starts and restored afterwards."""

from dataclasses import dataclass, replace
from typing import Any

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.contrasting import Contrasting
from napari_mamamia.widgets.viewer.planes import Layout, Planes
from napari_mamamia.widgets.viewer.projecting import Projecting
from napari_mamamia.widgets.viewer.subtracting import Subtracting
from napari_mamamia.widgets.viewer.view_flow import ViewFlow

Limits = tuple[float, float]
_IMAGES = (Role.PHASE, Role.SUBTRACTION, Role.PROJECTION)


@dataclass(frozen=True, slots=True)
class _Taken:
    """The stored view; `camera` is None if the image is fitted when the view is restored."""

    layout: Layout
    image: str
    phase: int
    minus: int
    slab_mm: float
    map_kind: str
    shown_map: str | None
    names: dict[str, str]
    limits: dict[Role, Limits]
    camera: Any | None


class OwnView(WindowPart):
    """A component that stores and restores layout, image, phase, window/level, map and zoom.

    The position is not restored, so that the reader continues at the last position of the hanging
    protocol.
    """

    def __init__(
        self,
        context: WindowContext,
        planes: Planes,
        view_flow: ViewFlow,
        subtracting: Subtracting,
        projecting: Projecting,
        contrasting: Contrasting,
        kinetic_map: KineticMapControl,
    ) -> None:
        super().__init__(context)
        self._planes = planes
        self._view_flow = view_flow
        self._subtracting = subtracting
        self._projecting = projecting
        self._contrasting = contrasting
        self._map = kinetic_map
        self._taken: _Taken | None = None
        self._limits_due: dict[Role, Limits] = {}
        self._camera_due: Any | None = None
        planes.links.fitted.append(self._put_camera)
        self._scene.viewer.layers.events.inserted.connect(self._put_late_limits)

    def take(self) -> None:
        """Store the current view."""
        images = [self._scene.layer(role) for role in _IMAGES]
        limits = {
            role: tuple(layer.contrast_limits)
            for role, layer in zip(_IMAGES, images, strict=True)
            if layer is not None
        }
        image = "subtraction" if self._subtracting.is_on else "phase"
        map_name = self._map.shown
        self._taken = _Taken(
            self._planes.wanted,
            "projection" if self._projecting.is_on else image,
            self._scene.phase or 0,
            self._subtracting.minus,
            self._projecting.slab_mm,
            self._map.kind,
            None if map_name is None else map_name.kind,
            self._contrasting.read_names(),
            limits,
            self._scene.view.read_camera(),
        )

    def follow_case(self) -> None:
        """Store the phase and window/level of a new case, with the whole slice visible."""
        layer = self._scene.layer(Role.PHASE)
        if self._taken is not None and layer is not None:
            limits = {Role.PHASE: tuple(layer.contrast_limits)}
            phase = self._scene.phase or 0
            self._taken = replace(self._taken, phase=phase, limits=limits, camera=None)

    def give_back(self, layout: Layout | None = None) -> None:
        """Restore the stored view, in a different layout if the user chose one."""
        view = self._taken
        self._taken = None
        if view is None:
            return
        self._camera_due = view.camera if layout is None else None
        self._limits_due = {
            role: limit for role, limit in view.limits.items() if role is not Role.PHASE
        }
        self._planes.set_layout(view.layout if layout is None else layout)
        self._contrasting.put_names(view.names)
        self._projecting.slab_mm = view.slab_mm
        if view.image == "phase":
            self._view_flow.choose_image("phase")
        # The phase first: a new image is computed for it.
        self._scene.go_to_phase(view.phase)
        self._subtracting.set_minus(view.minus)
        self._view_flow.choose_image(view.image)
        self._projecting.again()
        self._put_late_limits()
        phases = self._scene.layer(Role.PHASE)
        if phases is not None and Role.PHASE in view.limits:
            phases.contrast_limits = view.limits[Role.PHASE]
        self._put_map(view)
        if self._camera_due is not None:
            self._scene.view.put_camera(self._camera_due)

    def _put_map(self, view: _Taken) -> None:
        if view.shown_map is None:
            self._map.hide()
            self._map.kind = view.map_kind
        else:
            self._map.show(view.shown_map)

    def _put_camera(self) -> None:
        if self._camera_due is not None and not self._planes.is_building:
            camera, self._camera_due = self._camera_due, None
            self._scene.view.put_camera(camera)

    def _put_late_limits(self, _event: object = None) -> None:
        for role in tuple(self._limits_due):
            layer = self._scene.layer(role)
            if layer is not None:
                layer.contrast_limits = self._limits_due.pop(role)
