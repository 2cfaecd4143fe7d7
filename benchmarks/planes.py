"""Three linked planes: what a slice step, a cross-hair move and a changed box cost.

Run: ``python benchmarks/planes.py [--check]``; with ``--window`` in a real one, under a screen:
``xvfb-run -a python benchmarks/planes.py --window``. A case of 5 phases of 160x448x448 int16 with a
mask. Limits (Python alone, nothing drawn): a slice step in three planes 30 ms, a changed box of
20x20x20 voxels drawn in three planes 25 ms. With a window
the same calls include what napari does for its canvases, but not the drawing, which happens later.
"longest step" is the longest turn of the event loop while three planes open: each turn makes one
model (ours) or one of napari's views of it (napari's, with a window only).
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

settings = tempfile.TemporaryDirectory()
os.environ["NAPARI_CONFIG"] = str(Path(settings.name) / "settings.yaml")
os.environ["MAMAMIA_CONFIG_DIR"] = settings.name

import numpy as np  # noqa: E402
from qtpy.QtWidgets import QApplication  # noqa: E402

from napari_mamamia.core.box import Box  # noqa: E402
from napari_mamamia.core.case import Case, Phase  # noqa: E402
from napari_mamamia.core.grid import Grid  # noqa: E402
from napari_mamamia.widgets.base.jobs import JobRunner  # noqa: E402
from napari_mamamia.widgets.base.layers import Role, tag_for  # noqa: E402
from napari_mamamia.widgets.base.notify import Notifier  # noqa: E402
from napari_mamamia.widgets.base.service_record import Services  # noqa: E402
from napari_mamamia.widgets.base.session import Session  # noqa: E402
from napari_mamamia.widgets.viewer.canvas import CanvasText  # noqa: E402
from napari_mamamia.widgets.viewer.context import WindowContext  # noqa: E402
from napari_mamamia.widgets.viewer.planes import Layout, Planes  # noqa: E402
from napari_mamamia.widgets.viewer.scene import Scene  # noqa: E402

SHAPE = (160, 448, 448)
N_PHASES = 5
SLICE_STEP_MS = 30
BOX_EDIT_MS = 25
MIDDLE = (80, 224, 224)


def make_case() -> Case:
    rng = np.random.default_rng(3)
    signal = rng.integers(0, 900, (N_PHASES, *SHAPE), np.int16)
    grid = Grid(SHAPE, np.diag([-0.8, 0.8, 1.2, 1.0]))
    return Case("BENCH", grid, signal, tuple(Phase(k, 90.0 * k) for k in range(N_PHASES)))


def three_planes(viewer, case: Case) -> Planes:
    """Return the views of `case`, linked, without the rest of the dock."""
    scene, session, notifier = Scene(viewer), Session(), Notifier()
    context = WindowContext(session, scene, JobRunner(notifier), Services(), notifier)
    planes = Planes(context, CanvasText(scene))
    planes.session = session
    mask = np.zeros(SHAPE, np.uint8)
    mask[70:90, 210:240, 210:240] = 1
    scene.show_case(case, (0.0, 900.0))
    scene.show_mask(tag_for(case, Role.REFINED), mask)
    session.set_case(case, None, [])
    scene.view.go_to(MIDDLE)
    planes.mask = mask
    planes.scene = scene
    return planes


def timed(work: Callable[[int], object], times: int = 31) -> float:
    """Return the median milliseconds of `work`, after three that do not count."""
    took = []
    for k in range(times + 3):
        start = time.perf_counter()
        work(k)
        took.append((time.perf_counter() - start) * 1e3)
    return statistics.median(took[3:])


def build(planes: Planes, drawn: Callable[[], object]) -> tuple[float, float]:
    """Open three planes; return the longest step of the build and the whole, in ms."""
    planes.set_layout(Layout.PLANES)
    planes._build.stop()
    steps, begun = [], time.perf_counter()
    while planes.is_building:
        start = time.perf_counter()
        planes._build_next()
        steps.append((time.perf_counter() - start) * 1e3)
        drawn()
    return max(steps), (time.perf_counter() - begun) * 1e3


def one_plane_ms(case: Case) -> float:
    """Return what a slice step costs in napari alone: the same two layers, none of our links."""
    from napari.components import ViewerModel

    viewer = ViewerModel()
    viewer.add_image(case.signal, contrast_limits=(0, 900))
    mask = np.zeros(SHAPE, np.uint8)
    mask[70:90, 210:240, 210:240] = 1
    viewer.add_labels(mask).contour = 1
    return timed(lambda k: viewer.dims.set_current_step(1, 60 + k % 40))


def measure(planes: Planes) -> dict[str, float]:
    viewer, (sagittal, _) = planes.scene.viewer, planes.panes

    def edit(k: int) -> None:
        z, y, x = (place - 10 for place in MIDDLE)
        box = Box((z, y, x), (z + 20, y + 20, x + 20))
        planes.mask[box.slices] = k % 2
        planes.scene.redraw_box(Role.REFINED, box)

    return {
        "slice step in the main plane": timed(
            lambda k: viewer.dims.set_current_step(1, 60 + k % 40)
        ),
        "slice step in another plane": timed(
            lambda k: sagittal.model.dims.set_current_step(3, 200 + k % 40)
        ),
        "cross-hair through all planes": timed(
            lambda k: planes.links.go_to(tuple(place + k % 30 for place in MIDDLE))
        ),
        "phase step": timed(lambda k: viewer.dims.set_current_step(0, k % N_PHASES)),
        "box of 20x20x20 edited": timed(edit),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond a limit")
    parser.add_argument("--window", action="store_true", help="in a real window")
    options = parser.parse_args()
    case = make_case()
    app = QApplication.instance() or QApplication([])
    if options.window:
        import napari

        viewer = napari.Viewer()
        viewer.window.resize(1400, 900)
        planes = three_planes(viewer, case)
        longest, whole = build(planes, app.processEvents)
    else:
        from napari.components import ViewerModel

        planes = three_planes(ViewerModel(), case)
        longest, whole = build(planes, lambda: None)
    print(f"{'window' if options.window else 'no window'}, load {os.getloadavg()[0]:.1f}")
    print(f"three planes open in {whole:.0f} ms, longest step {longest:.0f} ms")
    print(f"{'slice step, napari alone':32}{one_plane_ms(case):8.1f} ms")
    found = measure(planes)
    for name, took in found.items():
        print(f"{name:32}{took:8.1f} ms")
    planes.close()
    too_slow = found["box of 20x20x20 edited"] > BOX_EDIT_MS
    too_slow |= found["slice step in the main plane"] > SLICE_STEP_MS
    too_slow |= found["slice step in another plane"] > SLICE_STEP_MS
    return int(options.check and too_slow)


if __name__ == "__main__":
    sys.exit(main())
