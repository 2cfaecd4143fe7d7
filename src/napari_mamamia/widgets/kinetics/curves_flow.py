"""Controller of the Curves tab: curves of the pointer, the visible mask and pinned regions."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QFileDialog

from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.curves import ContrastCurve, CurveLine, CurvePlot, line_of
from napari_mamamia.kinetics.time_axis import Timing, known_times
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.kinetics.case import KineticCase
from napari_mamamia.widgets.kinetics.colours import CURSOR_COLOUR, MASK_COLOUR, PIN_COLOURS
from napari_mamamia.widgets.kinetics.curves_tab import CurvesTab
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.slice_view import Voxel

_EVERY_MS: Final = 30
_MASK_AFTER_MS: Final = 250
_LANE: Final = "curve_mask"


class CurvesFlow(WindowPart):
    """The controller of the Curves tab, which computes nothing while the tab is hidden."""

    def __init__(
        self,
        context: WindowContext,
        tab: CurvesTab,
        bottom: BottomDock,
        state: KineticCase,
        aim: Aim,
    ) -> None:
        super().__init__(context)
        self._tab = tab
        self._bottom = bottom
        self._state = state
        self._aim = aim
        aim.changed.connect(self._leave_hidden)
        self._size = 3
        self._position: tuple[float, ...] | None = None
        self._voxel: Voxel | None = None
        self._cursor: CurveLine | None = None
        self._mask: CurveLine | None = None
        self.pinned: list[CurveLine] = []
        self._made = 0
        self._tick = _make_timer(self, _EVERY_MS, self._follow_pointer)
        self._mask_tick = _make_timer(self, _MASK_AFTER_MS, self._measure_mask)
        self._scene.viewer.mouse_move_callbacks.append(self._on_move)
        tab.pin_wanted.connect(self.pin)
        tab.removed.connect(self._remove_pinned)
        tab.renamed.connect(self._rename_pinned)
        tab.patch_changed.connect(self._set_size)
        tab.table_wanted.connect(lambda: self.save_as("table"))
        tab.figure_wanted.connect(lambda: self.save_as("figure"))
        state.opened.connect(self._forget_regions)
        state.changed.connect(self._measure_again)

    def show(self) -> None:
        """Show the Curves tab."""
        self._bottom.show()
        self.refresh_mask()

    def refresh_mask(self) -> None:
        """Schedule a measurement of the visible mask."""
        self._mask_tick.start()

    def pin(self, what: str) -> None:
        """Pin the current curve of the "mask" or the "cursor"."""
        line = self._mask if what == "mask" else self._cursor
        if line is None:
            problem = self._aim.problem_in(self._scene.viewer)
            missing = tr("show a mask first") if what == "mask" else tr("point at the image first")
            if what != "mask" and problem:
                missing = problem[:1].lower() + problem[1:]
            self._notifier.hint(tr("Nothing to pin: {missing}", missing=missing))
            return
        colour = PIN_COLOURS[self._made % len(PIN_COLOURS)]
        self._made += 1
        self.pinned.append(replace(line, name=f"{self._made} {line.name}", colour=colour))
        self._draw_curves()

    def save_as(self, what: str) -> None:
        """Ask for a file name for the "table" or the "figure", and save the file in a thread."""
        filters = tr("Tables (*.csv *.xlsx)") if what == "table" else tr("Figures (*.png *.svg)")
        suffix = ".csv" if what == "table" else ".png"
        case = self._state.case
        name = f"{case.case_id if case else 'curves'}_curves{suffix}"
        chosen, _ = QFileDialog.getSaveFileName(
            self._tab, tr("Save the {what}", what=what), name, filters
        )
        if chosen:
            path = Path(chosen)
            self.save(what, path if path.suffix else path.with_suffix(suffix))

    def save(self, what: str, path: Path) -> None:
        """Save the "table" or the "figure" of the displayed curves."""
        plot = self.plot()
        save = (
            self._services.kinetics.save_table
            if what == "table"
            else self._services.kinetics.save_figure
        )

        def work() -> Path:
            return save(plot, path)

        def show(saved: Path) -> None:
            self._notifier.hint(tr("Curves saved: {name}", name=saved.name))

        self._jobs.start("curves_save", tr("Saving {name}", name=path.name), work, show)

    def plot(self) -> CurvePlot:
        """Return the displayed plot."""
        case = self._state.case
        times, why = (None, "") if case is None else known_times(case.times_s)
        live = [line for line in (self._cursor, self._mask) if line is not None]
        timing = self._state.rule.timing if times else Timing.PHASE_ORDER
        title = "" if case is None else f"{self._add_note(case.case_id)} · {timing}"
        warning = tr("{why}, so the axis shows phase numbers", why=why) if why else ""
        if case is not None and len(case.phases) < 2:
            warning = tr("this case has no post-contrast phase")
        return CurvePlot(title, times, (*live, *self.pinned), warning)

    # -------------------------------------------------------------------- inner

    def _on_move(self, _viewer: Any, event: Any) -> None:
        if self._tab.isVisible():
            self._position = tuple(event.position)
            # Restarted at each move, the timer would show the curve only when the pointer rests.
            if not self._tick.isActive():
                self._tick.start()

    def _follow_pointer(self) -> None:
        case = self._state.case
        if case is None or self._position is None or len(case.phases) < 2:
            return
        if self._aim.problem_in(self._scene.viewer):
            self._leave_hidden()
            return
        voxel = self._scene.view.voxel_at(self._position)
        axis = self._scene.view.upright_axis
        if voxel is None or axis is None:
            return
        self._voxel = voxel
        curve = self._services.kinetics.cursor_curve(
            case, voxel, self._size, axis, self._state.rule
        )
        name = "voxel" if self._size == 1 else "3 × 3"
        z, y, x = voxel
        self._cursor = replace(
            line_of("pointer", CURSOR_COLOUR, curve),
            name=self._add_note(tr("{name} at {z}, {y}, {x}", name=name, z=z, y=y, x=x)),
        )
        self._draw_curves()

    def _leave_hidden(self) -> None:
        if self._cursor is not None and self._aim.problem_in(self._scene.viewer):
            self._cursor, self._position = None, None
            self._draw_curves()

    def _measure_mask(self) -> None:
        case, mask = self._state.case, self._state.shown_mask()
        if case is None or mask is None or not self._tab.isVisible():
            if mask is None and self._mask is not None:
                self._mask = None
                self._draw_curves()
            elif self._tab.isVisible():
                self._draw_curves()
            return

        def show(curve: ContrastCurve) -> None:
            self._mask = line_of(
                self._add_note(tr("{role} mask", role=mask.role)), MASK_COLOUR, curve
            )

        def drop(_error: Exception) -> None:
            self._mask = None  # the numbers of the same mask give the reason

        measure, rule = self._services.kinetics.mask_curve, self._state.rule
        self._jobs.start(
            _LANE,
            tr("Curve of the mask"),
            lambda: measure(case, mask.buffer, rule),
            show,
            failed=drop,
            ended=self._draw_curves,
            still=lambda: self._state.case is case,
            shown=False,
        )

    def _add_note(self, name: str) -> str:
        return f"{name} ({self._state.note})" if self._state.note else name

    def _set_size(self, size: int) -> None:
        self._size = size
        self._follow_pointer()

    def _remove_pinned(self, place: int) -> None:
        if place < len(self.pinned):
            del self.pinned[place]
            self._draw_curves()

    def _rename_pinned(self, place: int, name: str) -> None:
        if place < len(self.pinned) and self.pinned[place].name != name and name.strip():
            self.pinned[place] = replace(self.pinned[place], name=name.strip())
            self._draw_curves()

    def _forget_regions(self) -> None:
        self._cursor, self._mask, self._position = None, None, None
        self.pinned, self._made = [], 0
        self._draw_curves()

    def _measure_again(self) -> None:
        self._cursor, self._mask = None, None
        self.refresh_mask()
        self._draw_curves()

    def _draw_curves(self) -> None:
        live = [line for line in (self._cursor, self._mask) if line is not None]
        self._tab.show_curves(self.plot(), len(live))


def _make_timer(parent: QObject, milliseconds: int, then: Any) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    timer.timeout.connect(then)
    return timer
