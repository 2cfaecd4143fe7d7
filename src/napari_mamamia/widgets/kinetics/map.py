"""The kinetic map on the image: the plane on screen at once, the whole volume in a thread."""

from dataclasses import replace
from typing import Any, Final

from napari.components.overlays import TextOverlay
from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.map_kinds import MapKind, MapRange
from napari_mamamia.services.kinetics.show_kinetics import ShownMap
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.kinetic_services import KineticServices
from napari_mamamia.widgets.base.layers import Role, class_map_layer, map_layer, tag_for
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.colours import SER_COLOURS, TYPE_COLOURS, ramp_of
from napari_mamamia.widgets.viewer.scene import Scene

_BEGIN: Final = "kinetic_map"
_FILL: Final = "kinetic_fill"
_PLANE: Final = "kinetic_plane"
_RANGE: Final = "kinetic_range"
_OVERLAY: Final = "mamamia_map"
_TEXT_SIZE: Final = 11
_LONG_VOXELS: Final = 20_000_000
"""Below it a map takes less than 0.3 s, and a progress bar would only blink."""


class KineticMapControl(QObject):
    """Shows, hides and fills one map; `shown_changed` carries the `ShownMap` or None.

    `failed` carries the reason why a map cannot be made.
    """

    shown_changed = Signal(object)
    failed = Signal(str)

    def __init__(
        self,
        state: KineticCase,
        scene: Scene,
        jobs: JobRunner,
        services: KineticServices,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._state = state
        self._scene = scene
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self.kind = MapKind.PE
        self.floor_percent: float | None = None
        self.covers = False
        self._ranges: dict[MapKind, MapRange] = {}
        self._shown: ShownMap | None = None
        self._is_full = False
        self._ftv_box = Box.empty()
        scene.viewer.canvas.overlays[_OVERLAY] = TextOverlay(
            position="top_left", font_size=_TEXT_SIZE
        )
        scene.viewer.dims.events.current_step.connect(self._follow_slice)
        scene.viewer.dims.events.order.connect(self._follow_slice)
        state.opened.connect(self._forget)
        state.changed.connect(self._again)

    @property
    def shown(self) -> ShownMap | None:
        """The map on screen, None for none."""
        return self._shown

    @property
    def is_full(self) -> bool:
        """Whether the whole volume of the map was computed."""
        return self._is_full

    def toggle(self) -> None:
        """Show the map, or the image alone again."""
        if self._shown is not None or self._jobs.is_running(_BEGIN):
            self.hide()
        else:
            self.show(self.kind)

    def show(self, kind: MapKind) -> None:
        """Show a map in place of the one before."""
        self.kind = kind
        case = self._state.case
        if case is None:
            self._notifier.hint("No kinetic map: open a case first, and wait until it is read")
            self.shown_changed.emit(None)
            return
        self._jobs.cancel(_FILL)

        def begun(outcome: Outcome[ShownMap]) -> None:
            if isinstance(outcome, Finished) and self._state.case is case:
                self._put(outcome.result)
            elif isinstance(outcome, Failed):
                self.hide()
                self.failed.emit(str(outcome.error))

        services, floor, plane = self._services, self.floor_percent, self._scene.view.slice_shown()
        wanted, rule = self.range_now, self._state.rule

        def begin() -> ShownMap:
            made = services.ranged(services.begin_map(case, kind, floor, rule), wanted)
            if plane is not None:
                services.fill_plane(made, case, *plane)
            return made

        self._jobs.start(_BEGIN, f"Map: {kind}", begin, begun, shown=False)

    def hide(self) -> None:
        """Take the map away."""
        self._jobs.cancel(_BEGIN)
        self._jobs.cancel(_FILL)
        self._scene.overlays.hide_map()
        self._drop()

    def set_covering(self, covers: bool) -> None:
        """Let the map cover the image, or lie over it half transparent."""
        self.covers = covers
        self._scene.overlays.style_map(covers)

    @property
    def range_now(self) -> MapRange | None:
        """The range of colours that was chosen for this kind of map; None for its usual one."""
        return self._ranges.get(self.kind)

    def set_range(self, wanted: MapRange) -> None:
        """Let the colours of the map shown stand for other values, also the next time."""
        self._ranges[self.kind] = wanted
        shown = self._shown
        if shown is None or shown.is_classes:
            return
        if wanted.limits is not None:
            self._set_limits(self._services.ranged(shown, wanted).limits)
        elif self._is_full:
            self._find_range(shown)

    def set_floor(self, floor_percent: float | None) -> None:
        """Leave out voxels with less initial PE; None leaves out none."""
        self.floor_percent = floor_percent
        self._again()

    def paint_ftv(self, answer: Any) -> None:
        """Show an FTV that was counted anew, if its map is on screen."""
        shown = self._shown
        if shown is None or shown.kind is not MapKind.FTV:
            return
        changed = self._services.paint_ftv(shown, self._ftv_box, answer)
        self._ftv_box = answer.found.box
        self._scene.redraw_box(Role.MAP, changed)

    # -------------------------------------------------------------------- inner

    def _put(self, shown: ShownMap) -> None:
        case = self._state.case
        if case is None:
            return
        self._shown, self._is_full, self._ftv_box = shown, False, Box.empty()
        tag = tag_for(case, Role.MAP)
        if shown.kind is MapKind.FTV:
            made = class_map_layer(tag, shown.array, SER_COLOURS, "SER")
        elif shown.is_classes:
            made = class_map_layer(tag, shown.array, TYPE_COLOURS, "curve")
        else:
            ramp = ramp_of(shown.kind)
            made = map_layer(tag, shown.array, shown.limits, ramp.name, ramp.colours)
        self._scene.overlays.show_map(made, covers=self.covers)
        self._write()
        self.shown_changed.emit(shown)
        self._fill_rest(shown)

    def _fill_rest(self, shown: ShownMap) -> None:
        case = self._state.case
        if case is None:
            return

        def done(outcome: Outcome[ShownMap]) -> None:
            if isinstance(outcome, Finished) and self._is_of(shown):
                self._is_full = True
                self._scene.overlays.redraw_map()
                if self.range_now is not None and self.range_now.limits is None:
                    self._find_range(shown)
            elif isinstance(outcome, Failed):
                self._notifier.fail(f"Map {shown.kind}", outcome.error)

        fill = self._services.fill_map
        is_long = shown.array.size > _LONG_VOXELS
        title = f"Map {shown.kind}"
        self._jobs.start(_FILL, title, lambda: fill(shown, case), done, shown=is_long)

    def _find_range(self, shown: ShownMap) -> None:
        """Look for the range of a map that is full."""
        if shown.is_classes:
            return

        def done(outcome: Outcome[tuple[float, float]]) -> None:
            if isinstance(outcome, Finished) and self._is_of(shown):
                self._set_limits(outcome.result)

        find = self._services.auto_limits
        self._jobs.start(_RANGE, "Range of the map", lambda: find(shown), done, shown=False)

    def _is_of(self, shown: ShownMap) -> bool:
        """Whether a map is still the one on screen, in whatever range."""
        return self._shown is not None and self._shown.array is shown.array

    def _set_limits(self, limits: tuple[float, float]) -> None:
        """Draw the map shown in another range, without computing it again."""
        shown, layer = self._shown, self._scene.layer(Role.MAP)
        if shown is None or layer is None:
            return
        self._shown = replace(shown, limits=limits)
        layer.contrast_limits = limits
        self._write()
        self.shown_changed.emit(self._shown)

    def _follow_slice(self, _event: object = None) -> None:
        """Compute the slice that came into view, while the whole volume is not done.

        A slice as the file has it takes a few ms, any other one touches all of the map's memory.
        """
        shown, case, plane = self._shown, self._state.case, self._scene.view.slice_shown()
        if shown is None or case is None or plane is None or self._is_full:
            return
        if plane[0] == 0:
            self._services.fill_plane(shown, case, *plane)
            self._scene.overlays.redraw_map()
            return

        def done(outcome: Outcome[None]) -> None:
            if isinstance(outcome, Finished) and self._is_of(shown):
                self._scene.overlays.redraw_map()

        fill = self._services.fill_plane
        self._jobs.start(
            _PLANE, "Map of the slice", lambda: fill(shown, case, *plane), done, shown=False
        )

    def _again(self) -> None:
        if self._shown is not None:
            self.show(self._shown.kind)

    def _forget(self) -> None:
        self.hide()

    def _drop(self) -> None:
        was_shown, self._shown, self._is_full = self._shown is not None, None, False
        self._write()
        if was_shown:
            self.shown_changed.emit(None)

    def _write(self) -> None:
        overlay = self._scene.viewer.canvas.overlays[_OVERLAY]
        text = "" if self._shown is None else legend_text(self._shown)
        if overlay.text != text:
            overlay.text = text
        overlay.visible = bool(text)


def legend_text(shown: ShownMap) -> str:
    """Return what stands in the corner of the image while a map is shown."""
    if shown.kind is MapKind.TYPE:
        return "P persistent · L plateau · W washout"
    if shown.kind is MapKind.FTV:
        return "FTV, coloured by SER"
    low, high = shown.limits
    unit = f" {shown.unit}" if shown.unit else ""
    return f"{shown.kind}: {low:.4g} to {high:.4g}{unit}"
