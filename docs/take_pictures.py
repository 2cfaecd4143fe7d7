"""Takes the pictures of the README in a real window: ``python docs/take_pictures.py [FOLDER]``.

Needs a display; without one: ``xvfb-run -s "-screen 0 1400x900x24" python docs/take_pictures.py``.
The case is the demo's first phantom, so that the picture shows what ``make demo`` shows.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import napari

WIDTH, HEIGHT = 1400, 900
DEMO_CASES, DEMO_SEED = 12, 2026


def main() -> None:
    """Make the demo's data set, predict its first case, take the picture."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NAPARI_CONFIG"] = str(Path(folder) / "settings.yaml")
        os.environ["MAMAMIA_CONFIG_DIR"] = folder
        _take(Path(folder), target / "window.png")
        _take_refine(Path(folder) / "refine", target / "refine.png")
        _take_batch(Path(folder) / "demo", target / "batch.png")


def _take(folder: Path, picture: Path) -> None:
    import napari

    from napari_mamamia.core.progress import run_job
    from napari_mamamia.phantom import write_data_set
    from napari_mamamia.widgets.place import show_dock

    data_set = folder / "dataset"
    run_job(write_data_set(data_set, n_cases=DEMO_CASES, seed=DEMO_SEED))
    viewer = napari.Viewer(title="napari", show=True)
    viewer.theme = "dark"
    viewer.window.resize(WIDTH, HEIGHT)
    panel = show_dock(viewer, "Cases")
    panel.open_data_set(data_set, "PHANTOM_001")
    _wait(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    panel.predict()
    _wait(lambda: "prediction" in panel.session.masks)
    panel.go_to_lesion()
    _wait(lambda: not panel.jobs.is_running("lesion"))
    viewer.reset_view()
    panel.show_page("Score")
    dice = panel.findChild(object, "score_prediction_dsc")
    _wait(lambda: dice.text() != "–")
    _wait(_after(1.0))
    viewer.window.screenshot(str(picture), flash=False, canvas_only=False)
    panel.close_down()
    viewer.close()


def _take_refine(folder: Path, picture: Path) -> None:
    """Refine the demo's first prediction: two strokes, the brush at the tumour's edge."""
    import napari
    from qtpy.QtCore import QPoint
    from qtpy.QtTest import QTest

    from napari_mamamia.core.edits import Action, Brush
    from napari_mamamia.core.progress import run_job
    from napari_mamamia.phantom import write_data_set
    from napari_mamamia.widgets.place import show_dock
    from napari_mamamia.widgets.refine_state import PaintTool

    run_job(write_data_set(folder, n_cases=1, seed=DEMO_SEED))
    viewer = napari.Viewer(title="napari", show=True)
    viewer.theme = "dark"
    viewer.window.resize(WIDTH, HEIGHT)
    panel = show_dock(viewer, "Refine")
    panel.session.set_reader("Ana")
    panel.header.set_reader("Ana")
    panel.open_data_set(folder, "PHANTOM_001")
    _wait(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    panel.predict()
    _wait(lambda: "prediction" in panel.session.masks)
    panel.show_page("Refine")
    panel.editing.start(panel.session.masks["prediction"].role)
    _wait(lambda: panel.measure.images is not None)
    panel.go_to_lesion()
    _wait(lambda: not panel.jobs.is_running("lesion"))
    viewer.scene.camera.zoom *= 4
    panel.painting.set_tool(PaintTool.SMARTPAINT)
    panel.painting.set_brush(Brush(radius_mm=6.0))
    z, y, x = panel.scene.place_at((0.0, *_middle(viewer))) or (0.0, 0.0, 0.0)
    for step, brush in enumerate((Brush(radius_mm=8.0), Brush(action=Action.ERASE, radius_mm=4.0))):
        panel.editing.mask.press((z, y + 6 * step, x + 9 * step), brush)
        panel.editing.mask.release()
    native = viewer.window._qt_viewer.canvas.native
    QTest.mouseMove(native, QPoint(native.width() // 2 + 60, native.height() // 2 + 20))
    _wait(_after(1.5))
    viewer.window.screenshot(str(picture), flash=False, canvas_only=False)
    panel.close_down()
    viewer.close()


def _middle(viewer: "napari.Viewer") -> tuple[float, ...]:
    """Return the world position (slice, row, column) in the middle of the image on screen."""
    down, across = viewer.scene.camera.center[-2:]
    place = list(viewer.dims.point[-3:])
    rows, columns = (axis - (viewer.dims.ndim - 3) for axis in viewer.dims.displayed)
    place[rows], place[columns] = down, across
    return tuple(place)


def _take_batch(folder: Path, picture: Path) -> None:
    """Score the demo's predictions in the window and open the fourth worst case."""
    import napari

    from napari_mamamia.core.progress import run_job
    from napari_mamamia.services.demo import make_demo
    from napari_mamamia.widgets.place import show_dock

    demo = run_job(make_demo(folder))
    viewer = napari.Viewer(title="napari", show=True)
    viewer.theme = "dark"
    viewer.window.resize(WIDTH, HEIGHT)
    panel = show_dock(viewer, "Batch scoring")
    panel.open_data_set(demo.data_set)
    _wait(lambda: panel.session.opened is not None)
    page = panel.batch_page
    page.start.click()
    _wait(lambda: not panel.jobs.is_running("batch"))
    page.replace.click()
    _wait(lambda: not panel.jobs.is_running("batch"))
    panel.results_flow.open_case(panel.results.case_ids()[3])
    _wait(lambda: panel.header.agreement.isVisible() and panel.session.case.is_loaded)
    viewer.reset_view()
    _wait(_after(1.0))
    viewer.window.screenshot(str(picture), flash=False, canvas_only=False)
    panel.close_down()
    viewer.close()


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _wait(ready: Callable[[], bool], at_most_s: float = 60.0) -> None:
    from qtpy.QtWidgets import QApplication

    timed_out = _after(at_most_s)
    while not ready():
        QApplication.processEvents()
        time.sleep(0.01)
        if timed_out():
            raise TimeoutError("the window did not get ready in time: is the machine busy?")


if __name__ == "__main__":
    main()
