"""Painting: from a mouse event to the updated layer, undo, and how long the GUI thread stalls.

``python benchmarks/painting.py [--check]``. Without a window: a `ViewerModel` that nobody draws,
with events as napari sends them, on 96x384x384 voxels of 2.0x0.7x0.7 mm and five phases. Three
linked views are three `ViewerModel`s whose layers share one array. Limits are those of issue 4.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

settings = tempfile.TemporaryDirectory()
os.environ["NAPARI_CONFIG"] = str(Path(settings.name) / "settings.yaml")
os.environ["MAMAMIA_CONFIG_DIR"] = settings.name

import numpy as np  # noqa: E402
from napari.components import ViewerModel  # noqa: E402
from napari.utils.interactions import (  # noqa: E402
    mouse_move_callbacks,
    mouse_press_callbacks,
    mouse_release_callbacks,
)
from qtpy.QtCore import QTimer  # noqa: E402
from qtpy.QtWidgets import QApplication  # noqa: E402

from napari_mamamia.core.case import Case, LabelMap, Phase  # noqa: E402
from napari_mamamia.core.grid import Grid  # noqa: E402
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind  # noqa: E402
from napari_mamamia.io.workspace.preferences import Preferences  # noqa: E402
from napari_mamamia.io.workspace.workspace import Workspace  # noqa: E402
from napari_mamamia.services.case.context import CaseContext  # noqa: E402
from napari_mamamia.services.case.data_set import OpenDataSet  # noqa: E402
from napari_mamamia.services.case.show_case import OpenMask  # noqa: E402
from napari_mamamia.smartpaint.evidence.stroke import preview_stroke  # noqa: E402
from napari_mamamia.widgets.adapter.adapter import redraw_part  # noqa: E402
from napari_mamamia.widgets.base.layers import Role, find_layer  # noqa: E402
from napari_mamamia.widgets.base.service_record import Services  # noqa: E402
from napari_mamamia.widgets.base.session import SessionMask  # noqa: E402
from napari_mamamia.widgets.dock.dock import MamamiaDock  # noqa: E402
from napari_mamamia.widgets.refine.state import PaintTool  # noqa: E402
from napari_mamamia.widgets.viewer.scene import load_napari_parts, use_units  # noqa: E402

SHAPE = (96, 384, 384)
SPACING_XYZ = (0.7, 0.7, 2.0)
CENTRE = (48, 190, 190)
EVENT_MS, LINKED_MS, UNDO_MS, STALL_MS, PREVIEW_MS, NUMBERS_MS = 16.0, 25.0, 20.0, 50.0, 30.0, 50.0
SETTLED_MS = 400.0


class Heartbeat:
    """A 2 ms timer in the event loop that remembers its longest gap."""

    def __init__(self) -> None:
        self.last, self.longest = time.perf_counter(), 0.0
        self.timer = QTimer()
        self.timer.timeout.connect(self.tick)
        self.timer.start(2)

    def tick(self) -> None:
        """Note how long ago the last tick was."""
        now = time.perf_counter()
        self.longest, self.last = max(self.longest, now - self.last), now

    def restart(self) -> None:
        """Forget what was."""
        self.last, self.longest = time.perf_counter(), 0.0


def make_case() -> Case:
    """Return a case with a ball of 18 mm that stands 4 noise units above the rest."""
    rng = np.random.default_rng(4)
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    away = ((z - 48) * 2.0) ** 2 + ((y - 190) * 0.7) ** 2 + ((x - 190) * 0.7) ** 2
    signal = np.empty((5, *SHAPE), np.int16)
    for phase in range(5):
        noise = rng.normal(300, 20, SHAPE)
        noise[away < 18**2] += 0 if phase == 0 else 80 + 5 * phase
        signal[phase] = noise
    grid = Grid(SHAPE, np.diag([*SPACING_XYZ, 1.0]))
    return Case("BENCH", grid, signal, tuple(Phase(k, 90.0 * k) for k in range(5)))


def wait_until(condition, patience_s=120) -> None:
    start = time.perf_counter()
    while not condition():
        QApplication.processEvents()
        if time.perf_counter() - start > patience_s:
            raise TimeoutError("the window did not get there")


class Bench:
    """A dock on a viewer without a window, with an own mask of the case."""

    def __init__(self, folder: Path) -> None:
        self.case = make_case()
        self.viewer = ViewerModel()
        preferences = Preferences(reader="Bench")
        services = Services(load_preferences=lambda: preferences, save_preferences=lambda _: None)
        self.dock = MamamiaDock(self.viewer, services)
        use_units(load_napari_parts())
        for step in self.dock.scene.warm_up_steps():
            step()
        self.dock.show_page("Refine")
        files = CaseFiles("BENCH", ())
        data_set = DataSet(folder, LayoutKind.MAMA_MIA, (files,))
        opened = self.dock.session.opened = OpenDataSet(data_set, Workspace(folder / "work"), None)
        self.dock.session.set_row = lambda *_: None
        reference = np.zeros(SHAPE, np.uint8)
        reference[40:56, 170:210, 170:210] = 1
        expert = OpenMask("reference", "expert", LabelMap.of(reference, self.case.grid), reference)
        mask = SessionMask(Role.REFERENCE, "expert", reference, expert.labels)
        self.dock.scene.show_case(self.case, (0.0, 600.0))
        self.dock.session.set_case(self.case, CaseContext(opened, "BENCH"), [mask])
        self.dock.scene.view.go_to(CENTRE, centre=False)
        self.heart = Heartbeat()
        self.settling: list[float] = []

    def start(self) -> float:
        """Start from the reference; return the longest stall in ms."""
        wait_until(lambda: not self.dock.jobs.is_running("edit"))
        QApplication.processEvents()
        self.heart.restart()
        self.dock.editing.start(Role.REFERENCE)
        wait_until(lambda: self.dock.measure.images is not None)
        wait_until(lambda: self.dock.measure.shown.now is not None)
        return self.heart.longest * 1000

    def send(self, callbacks, kind, voxel, *, dragging=True) -> float:
        """Send one event; return the milliseconds it took."""
        grid = self.case.grid
        frame = grid.display_frame()
        shown = frame.point_to_display(voxel, SHAPE)
        spacing = frame.per_axis(grid.spacing_mm)
        world = (1.0, *(place * mm for place, mm in zip(shown, spacing, strict=True)))
        event = SimpleNamespace(
            type=kind,
            position=world,
            pos=np.array([5.0, 5.0]),
            button=1,
            modifiers=(),
            handled=False,
            is_dragging=dragging,
            __wrapped__=None,
        )
        if self.viewer._persisted_mouse_event:
            self.event.__dict__.update(event.__dict__)
        else:
            self.event = event
        start = time.perf_counter()
        callbacks(self.viewer, self.event)
        return (time.perf_counter() - start) * 1000

    def stroke(self, tool: PaintTool, radius_mm: float, moves: int = 25) -> list[float]:
        """Paint one stroke, letting the event loop turn between events."""
        brush = self.dock.painting.state.brush
        self.dock.painting.set_brush(replace(brush, radius_mm=radius_mm))
        self.dock.painting.set_tool(tool)
        took = [self.send(mouse_press_callbacks, "mouse_press", CENTRE)]
        for move in range(1, moves + 1):
            voxel = (CENTRE[0], CENTRE[1] + move * 0.8, CENTRE[2] + 12 * np.sin(move / 4))
            took.append(self.send(mouse_move_callbacks, "mouse_move", voxel))
            QApplication.processEvents()
        took.append(self.send(mouse_release_callbacks, "mouse_release", CENTRE))
        start = time.perf_counter()
        strokes = self.dock.editing.mask.strokes
        wait_until(lambda: not strokes.is_settling)
        self.settling.append((time.perf_counter() - start) * 1000)
        return took


def linked_views(bench: Bench) -> list[float]:
    """Repaint a 20 mm box in three models that share the mask's array, in three planes."""
    mask = bench.dock.scene.layer(Role.REFINED)
    layers = []
    for order in ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)):
        viewer = ViewerModel()
        viewer.add_image(bench.dock.scene.layer(Role.PHASE).data, contrast_limits=(0, 600))
        viewer.add_labels(mask.data).contour = 1
        viewer.dims.order = order
        layers.append(find_layer(viewer.layers, Role.REFINED) or viewer.layers[-1])
    took = []
    # The sphere changes voxels while it is drawn; a stroke of SmartPaint when it is settled.
    bench.dock.painting.set_tool(PaintTool.SPHERE)
    live, brush = bench.dock.editing.live, bench.dock.painting.brush_for(False, False)
    live.press(CENTRE, brush)
    for move in range(1, 30):
        start = time.perf_counter()
        box = live.drag((CENTRE[0], CENTRE[1] - move * 0.8, CENTRE[2] + move * 0.5))
        if not box.is_empty:
            for layer in layers:
                redraw_part(layer, box.slices)
        took.append((time.perf_counter() - start) * 1000)
    live.release()
    return took


def p95(values: list[float]) -> float:
    return float(np.percentile(values, 95))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond a limit")
    parser.add_argument("--strokes", type=int, default=12)
    options = parser.parse_args()
    app = QApplication.instance() or QApplication([])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        rows = [("starting an edit: longest stall", bench.start(), STALL_MS)]
        for tool, radius in ((PaintTool.SMARTPAINT, 10), (PaintTool.SMARTPAINT, 20)):
            bench.stroke(tool, radius)
            bench.heart.restart()
            took = [t for _ in range(options.strokes) for t in bench.stroke(tool, radius)]
            name = f"{tool} r {radius} mm: event to layer, p95"
            rows.append((name, p95(took), EVENT_MS))
            rows.append(
                (f"{tool} r {radius} mm: longest stall", bench.heart.longest * 1000, STALL_MS)
            )
            settling = float(np.median(bench.settling[-options.strokes :]))
            rows.append((f"{tool} r {radius} mm: from release to mask", settling, SETTLED_MS))
        rows.append(("three linked views, r 20 mm, p95", p95(linked_views(bench)), LINKED_MS))
        rows += more(bench, options.strokes)
        bench.dock.close_down()
        bench.dock.jobs.wait(20)
    print(f"96x384x384, 0.7x0.7x2.0 mm; load {os.getloadavg()[0]:.1f}")
    for name, value, limit in rows:
        print(f"{name:<48} {value:7.1f} ms   (limit {limit:.0f} ms)")
    del app
    return int(options.check and any(value > limit for _, value, limit in rows))


def more(bench: Bench, strokes: int) -> list[tuple[str, float, float]]:
    """Undo, preview, numbers, growing and saving."""
    dock, undo = bench.dock, []
    for _ in range(strokes):
        start = time.perf_counter()
        dock.editing.mask.undo()
        undo.append((time.perf_counter() - start) * 1000)
        QApplication.processEvents()
    rows = [("undo of a 20 mm stroke, p95", p95(undo), UNDO_MS)]
    preview, live = [], dock.editing.live
    dock.painting.set_tool(PaintTool.SMARTPAINT)
    for move in range(20):
        live.press((48.0, 190.0 + move, 190.0), dock.painting.brush_for(False, False))
        work = live.current_work()
        live.abandon()
        start = time.thread_time()
        preview_stroke(work)
        preview.append((time.thread_time() - start) * 1000)
    rows.append(("preview r 20 mm, processor time, p95", p95(preview), PREVIEW_MS))
    numbers = []
    for _ in range(5):
        got = []
        dock.measure.numbers.connect(got.append)
        start = time.perf_counter()
        dock.measure.measure_now()
        wait_until(lambda got=got: got)
        numbers.append((time.perf_counter() - start) * 1000)
        dock.measure.numbers.disconnect(got.append)
    rows.append(("numbers after a stroke, median", float(np.median(numbers)), NUMBERS_MS))
    QApplication.processEvents()
    bench.heart.restart()
    dock.growing.grow()
    wait_until(lambda: not dock.growing.is_busy)
    rows.append(("growing: longest stall", bench.heart.longest * 1000, STALL_MS))
    bench.heart.restart()
    dock.editing.save()
    wait_until(lambda: not dock.jobs.is_running("save"))
    rows.append(("saving: longest stall", bench.heart.longest * 1000, STALL_MS))
    return rows


if __name__ == "__main__":
    sys.exit(main())
