"""The kinetic map on the image, computed at once for the visible plane, then for the volume."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from napari.components.overlays import TextOverlay
from qtpy.QtCore import Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.map_kinds import MapKind, MapRange
from napari_mamamia.services.kinetics.show_kinetics import ShownMap
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import Role, class_map_layer, map_layer, tag_for
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.colours import SER_COLOURS, TYPE_COLOURS, ramp_of
from napari_mamamia.widgets.viewer.canvas import has_room
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_BEGIN: Final = "kinetic_map"
_FILL: Final = "kinetic_fill"
_PLANE: Final = "kinetic_plane"
_RANGE: Final = "kinetic_range"
_OVERLAY: Final = "mamamia_map"
_TEXT_SIZE: Final = 11
_LONG_VOXELS: Final = 20_000_000
"""Number of voxels up to which a map takes less than 0.3 s and needs no progress bar."""


class KineticMapControl(WindowPart):
    """A component that shows, hides and computes one map.

    The signal `shown_changed` carries a `ShownMap` or None; `failed` carries the reason why a map
    cannot be computed.
    """

    shown_changed = Signal(object)
    failed = Signal(str)

    def __init__(self, context: WindowContext, state: KineticCase) -> None:
        super().__init__(context)
        self._state = state
        self.kind: str = MapKind.PE
        self.floor_percent: float | None = None
        self.covers = False
        self._ranges: dict[str, MapRange] = {}
        self._shown: ShownMap | None = None
        self._is_full = False
        self._telling = EventLoopSteps(self)
        self._ftv_box = Box.empty()
        self._scene.viewer.canvas.overlays[_OVERLAY] = TextOverlay(
            position="bottom_left", font_size=_TEXT_SIZE
        )
        self._scene.viewer.dims.events.current_step.connect(self._follow_slice)
        self._scene.viewer.dims.events.order.connect(self._follow_slice)
        self._scene.viewer.canvas.events.size.connect(self._follow_size)
        state.opened.connect(self._forget_map)
        state.changed.connect(self._show_again)

    @property
    def shown(self) -> ShownMap | None:
        """The displayed map, or None if there is none."""
        return self._shown

    @property
    def is_full(self) -> bool:
        """Whether the map was computed for the whole volume."""
        return self._is_full

    def toggle(self) -> None:
        """Show or hide the map."""
        if self._is_wanted:
            self.hide()
        else:
            self.show(self.kind)

    def show(self, kind: str) -> None:
        """Show a map, replacing the previous one."""
        self.kind = kind
        case = self._state.case
        if case is None:
            self._notifier.hint(tr("No kinetic map: open a case and wait until it has loaded."))
            self.shown_changed.emit(None)
            return
        self._jobs.cancel(_FILL)

        def refuse(error: Exception) -> None:
            self.hide()
            self.failed.emit(plain_text(error))

        services, floor, plane = (
            self._services.kinetics,
            self.floor_percent,
            self._scene.view.slice_shown(),
        )
        value_range, rule = self.range_now, self._state.rule

        def begin() -> ShownMap:
            new_map = services.ranged(services.begin_map(case, kind, floor, rule), value_range)
            if plane is not None:
                services.fill_plane(new_map, case, *plane)
            return new_map

        self._jobs.start(
            _BEGIN,
            tr("Map: {kind}", kind=kind),
            begin,
            self._put_map,
            failed=refuse,
            still=lambda: self._state.case is case,
            shown=False,
        )

    def hide(self) -> None:
        """Remove the map."""
        was_wanted = self._is_wanted
        self._jobs.cancel(_BEGIN)
        self._jobs.cancel(_FILL)
        self._scene.overlays.hide_map()
        self._shown, self._is_full = None, False
        self._telling.start([])
        self._write_legend()
        if was_wanted:
            self.shown_changed.emit(None)

    def set_covering(self, covers: bool) -> None:
        """Set whether the map covers the image, or is half transparent."""
        self.covers = covers
        self._scene.overlays.style_map(covers)

    @property
    def range_now(self) -> MapRange | None:
        """The colour range chosen for this type of map, or None for the default."""
        return self._ranges.get(self.kind)

    def set_range(self, wanted: MapRange) -> None:
        """Set the colour range of the displayed map, and of later maps of the same type."""
        self._ranges[self.kind] = wanted
        shown = self._shown
        if shown is None or shown.is_classes:
            return
        if wanted.limits is not None:
            self._set_limits(self._services.kinetics.ranged(shown, wanted).limits)
        elif self._is_full:
            self._find_range(shown)

    def set_floor(self, floor_percent: float | None) -> None:
        """Hide voxels with an initial enhancement below a percentage; None shows all voxels."""
        self.floor_percent = floor_percent
        self._show_again()

    def paint_ftv(self, answer: Any) -> None:
        """Show a new FTV if its map is displayed."""
        shown = self._shown
        if shown is None or shown.kind is not MapKind.FTV:
            return
        changed = self._services.kinetics.paint_ftv(shown, self._ftv_box, answer)
        self._ftv_box = answer.found.box
        self._scene.redraw_box(Role.MAP, changed)

    # -------------------------------------------------------------------- inner

    @property
    def _is_wanted(self) -> bool:
        return self._shown is not None or self._jobs.is_running(_BEGIN)

    def _put_map(self, shown: ShownMap) -> None:
        case = self._state.case
        if case is None:
            return
        self._shown, self._is_full, self._ftv_box = shown, False, Box.empty()
        tag = tag_for(case, Role.MAP)
        if shown.kind is MapKind.FTV:
            layer = class_map_layer(tag, shown.array, SER_COLOURS, "SER")
        elif shown.is_classes:
            layer = class_map_layer(tag, shown.array, TYPE_COLOURS, "curve")
        else:
            ramp = ramp_of(shown.kind)
            layer = map_layer(tag, shown.array, shown.limits, ramp.name, ramp.colours)
        self._scene.overlays.show_map(layer, covers=self.covers)
        self._write_legend()
        # The page takes as long as the layer, so it is updated in the next event-loop iteration.
        self._telling.start([partial(self._report_shown, shown)])
        self._fill_rest(shown)

    def _report_shown(self, shown: ShownMap) -> None:
        if self._is_of(shown):
            self.shown_changed.emit(self._shown)

    def _fill_rest(self, shown: ShownMap) -> None:
        case = self._state.case
        if case is None:
            return

        def finish(_shown: ShownMap) -> None:
            self._is_full = True
            self._scene.overlays.redraw_map()
            if self.range_now is not None and self.range_now.limits is None:
                self._find_range(shown)

        fill = self._services.kinetics.fill_map
        self._jobs.start(
            _FILL,
            tr("Making the map {kind}", kind=shown.kind),
            lambda: fill(shown, case),
            finish,
            still=lambda: self._is_of(shown),
            shown=shown.array.size > _LONG_VOXELS,
        )

    def _find_range(self, shown: ShownMap) -> None:
        if shown.is_classes:
            return

        find = self._services.kinetics.auto_limits
        self._jobs.start(
            _RANGE,
            tr("Range of the map"),
            lambda: find(shown),
            self._set_limits,
            still=lambda: self._is_of(shown),
            shown=False,
        )

    def _is_of(self, shown: ShownMap) -> bool:
        return self._shown is not None and self._shown.array is shown.array

    def _set_limits(self, limits: tuple[float, float]) -> None:
        shown, layer = self._shown, self._scene.layer(Role.MAP)
        if shown is None or layer is None:
            return
        self._shown = replace(shown, limits=limits)
        layer.contrast_limits = limits
        self._write_legend()
        self.shown_changed.emit(self._shown)

    def _follow_slice(self, _event: object = None) -> None:
        """Compute the newly visible slice, until the whole volume is complete.

        A slice in the file's orientation takes a few ms; any other slice accesses the memory of the
        whole map.
        """
        shown, case, plane = self._shown, self._state.case, self._scene.view.slice_shown()
        if shown is None or case is None or plane is None or self._is_full:
            return
        if plane[0] == 0:
            self._services.kinetics.fill_plane(shown, case, *plane)
            self._scene.overlays.redraw_map()
            return

        fill = self._services.kinetics.fill_plane
        self._jobs.start(
            _PLANE,
            tr("Making the map of the slice"),
            lambda: fill(shown, case, *plane),
            lambda _: self._scene.overlays.redraw_map(),
            still=lambda: self._is_of(shown),
            shown=False,
        )

    def _show_again(self) -> None:
        if self._is_wanted:
            self.show(self.kind)

    def _forget_map(self) -> None:
        self.hide()

    def _follow_size(self, _event: object = None) -> None:
        if self._shown is not None:
            self._write_legend()

    def _write_legend(self) -> None:
        overlay = self._scene.viewer.canvas.overlays[_OVERLAY]
        text = "" if self._shown is None else legend_text(self._shown)
        if self._shown is not None and not has_room(self._scene.viewer, text, overlay.font_size):
            text = legend_text(self._shown, is_brief=True)
        if overlay.text != text:
            overlay.text = text
        overlay.visible = bool(text)


def legend_text(shown: ShownMap, *, is_brief: bool = False) -> str:
    """Return the legend in the corner of the image while a map is displayed.

    `is_brief` shortens the legend if the full line would cover the orientation letter below.
    """
    if shown.kind is MapKind.TYPE and is_brief:
        return tr("P blue\nL green\nW red")
    if shown.kind is MapKind.TYPE:
        # one line each, at the bottom: they cover the area behind or next to the breast
        return tr("P persistent, blue\nL plateau, green\nW washout, red")
    if shown.kind is MapKind.FTV:
        return tr("FTV, coloured by SER")
    low, high = shown.limits
    unit = f" {shown.unit}" if shown.unit else ""
    return tr(
        "{kind}: {low:.4g} to {high:.4g}{unit}", kind=shown.kind, low=low, high=high, unit=unit
    )
