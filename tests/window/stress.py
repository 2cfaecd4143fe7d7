"""Random clicks in a real window, in a process of its own: ``stress.py DATA_SET SEED ACTIONS``.

Each action is printed before it is done, so that the last line before a crash names its cause; the
stacks of all threads follow on standard error. The same seed does the same actions.
"""

import faulthandler
import os
import random
import sys
import tempfile
from pathlib import Path

faulthandler.enable()
settings = tempfile.TemporaryDirectory()
os.environ["NAPARI_CONFIG"] = str(Path(settings.name) / "settings.yaml")
os.environ["MAMAMIA_CONFIG_DIR"] = settings.name

import napari  # noqa: E402
import numpy as np  # noqa: E402
from qtpy.QtCore import QEventLoop, QPoint, QPointF, Qt, QTimer  # noqa: E402
from qtpy.QtGui import QWheelEvent  # noqa: E402
from qtpy.QtTest import QTest  # noqa: E402
from qtpy.QtWidgets import QApplication  # noqa: E402

from napari_mamamia.widgets.dock.place import dock_of  # noqa: E402
from napari_mamamia.widgets.dock.steps import PAGES  # noqa: E402

PLUGIN = "napari-mamamia"
PATIENCE_MS = 20_000
KEYS = (
    Qt.Key.Key_D,
    Qt.Key.Key_I,
    Qt.Key.Key_J,
    Qt.Key.Key_K,
    Qt.Key.Key_N,
    Qt.Key.Key_O,
    Qt.Key.Key_Q,
    Qt.Key.Key_Y,
    Qt.Key.Key_G,
    Qt.Key.Key_Comma,
    Qt.Key.Key_Period,
)


class Window:
    """A napari window with our dock, and what one can do to it."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder = folder
        self.rng = rng
        self.viewer = napari.Viewer(show=False)
        self.viewer.window.resize(1280, 800)
        self.viewer.window.add_plugin_dock_widget(PLUGIN, "Cases")
        self.viewer.show()
        self.panel = dock_of(self.viewer)
        self.panel.session.set_reader("Ana")
        self.panel.open_data_set(folder)
        self.wait_for(lambda: self.panel.session.opened is not None)

    @property
    def native(self):
        return self.viewer.window._qt_viewer.canvas.native

    def wait_for(self, condition) -> None:
        """Let the event loop turn until a condition holds, sleeping meanwhile."""
        loop, poll, end = QEventLoop(), QTimer(), QTimer()
        poll.timeout.connect(lambda: loop.quit() if condition() else None)
        end.setSingleShot(True)
        end.timeout.connect(loop.quit)
        poll.start(5)
        end.start(PATIENCE_MS)
        loop.exec()
        poll.stop()
        end.stop()
        if not condition():
            raise TimeoutError("the window did not get there")

    def settle(self, ms: int) -> None:
        """Let the event loop turn for some ms; 0 leaves all events where they are."""
        if ms:
            QTest.qWait(ms)

    def middle(self) -> QPoint:
        return QPoint(self.native.width() // 2, self.native.height() // 2)

    # ---------------------------------------------------------------- actions

    def open_case(self) -> None:
        self.panel.cases_flow.open_case(self.rng.choice(self.panel.session.queue))

    def open_and_wait(self) -> None:
        self.open_case()
        self.wait_for(lambda: not self.panel.jobs.is_running("open"))
        self.wait_for(lambda: not self.panel.jobs.is_running("fill"))

    def turn_3d(self) -> None:
        self.viewer.dims.ndisplay = 3

    def turn_2d(self) -> None:
        self.viewer.dims.ndisplay = 2

    def turn_by_button(self) -> None:
        button = self.viewer.window._qt_viewer.viewerButtons.ndisplayButton
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def remove_one_layer(self) -> None:
        if len(self.viewer.layers):
            self.viewer.layers.pop(self.rng.randrange(len(self.viewer.layers)))

    def remove_all_layers(self) -> None:
        self.viewer.layers.select_all()
        self.viewer.layers.remove_selected()

    def clear_layers(self) -> None:
        self.viewer.layers.clear()

    def add_points(self) -> None:
        self.viewer.add_points(np.zeros((3, 3)), name="others")

    def add_image(self) -> None:
        self.viewer.add_image(np.random.default_rng(0).random((4, 30, 30)), name="others")

    def hide_dock(self) -> None:
        home = self.panel.docking.home
        if home is not None:
            home.close()

    def reopen_dock(self) -> None:
        page = self.rng.choice(PAGES)
        self.viewer.window.add_plugin_dock_widget(PLUGIN, page)

    def float_dock(self) -> None:
        home = self.panel.docking.home
        if home is not None:
            home.setFloating(not home.isFloating())

    def turn_page(self) -> None:
        self.panel.show_page(self.rng.choice(PAGES))

    def press_key(self) -> None:
        self.native.setFocus()
        QTest.keyClick(self.native, self.rng.choice(KEYS))

    def turn_wheel(self) -> None:
        at = QPointF(self.middle())
        step = QPoint(0, self.rng.choice((-120, 120)))
        keys = self.rng.choice(
            (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier)
        )
        event = QWheelEvent(
            at,
            self.native.mapToGlobal(at),
            step,
            step,
            Qt.MouseButton.NoButton,
            keys,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(self.native, event)

    def drag(self) -> None:
        start, left = self.middle(), Qt.MouseButton.LeftButton
        QTest.mousePress(self.native, left, pos=start)
        for step in range(4):
            QTest.mouseMove(self.native, start + QPoint(6 * step, 3 * step))
        QTest.mouseRelease(self.native, left, pos=start + QPoint(18, 9))

    def edit(self) -> None:
        if self.panel.session.case is not None:
            self.panel.editing.start(None)

    def predict(self) -> None:
        self.panel.predict()

    def resize(self) -> None:
        self.viewer.window.resize(*self.rng.choice(((900, 700), (1280, 800), (1400, 900))))

    def toggle_grid(self) -> None:
        self.viewer.canvas.grid.enabled = not self.viewer.canvas.grid.enabled

    def roll(self) -> None:
        self.viewer.dims.roll()

    def take_picture(self) -> None:
        # Planes that are being made leave the canvas without width until a turn has passed; napari
        # has no picture of such a canvas.
        while self.viewer.window._qt_viewer.canvas.native.width() == 0:
            self.settle(20)
        self.viewer.screenshot(canvas_only=True, flash=False)

    def hide_window(self) -> None:
        window = self.viewer.window._qt_window
        window.hide()
        self.settle(self.rng.choice((0, 20)))
        window.show()


ACTIONS = tuple(
    name
    for name, value in vars(Window).items()
    if callable(value) and name not in ("wait_for", "settle", "middle") and name[0] != "_"
)
OFTEN = ("open_case", "turn_3d", "turn_2d", "remove_all_layers", "reopen_dock", "press_key")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    window = Window(folder, rng)
    window.open_and_wait()
    for number in range(count):
        name = rng.choice(ACTIONS + OFTEN)
        pause = rng.choice((0, 0, 10, 60))
        say(f"{number} {name} {pause}")
        getattr(window, name)()
        window.settle(pause)
    say("closing")
    window.panel.close_down()
    window.viewer.close()
    window.settle(50)
    say("done")


if __name__ == "__main__":
    main()
