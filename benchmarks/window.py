"""The real window: how long each action holds its thread, and the time to the first picture.

Run under a screen: ``xvfb-run -a python benchmarks/window.py [--check] [--runs N] [--data DIR]``.
Each run is a program of its own: napari's window as its command line makes it, our dock, a data set
of two cases of 5 phases of 160x448x448 voxels (phantoms, made once; ``--data`` keeps them), and a
mouse. For each action stand the longest turn of the event loop in processor time of the window's
thread, drawing by OpenGL apart (see main_thread.py), its sum, and the drawing; medians of the runs.
A run in which the machine's memory was slow before an action does not count for it (see
memory_state.py).
Limits: no turn over 50 ms but for the named `EXCEPTIONS`; the first phase on screen within 0.6 s of
the double-click (wall time); the turns of a hanging step together within `HANGING_MS`.
``--profile ACTION`` prints where that action's time went, ``--turns`` for each action whose longest
turn it was: of whose functions, and the calls that took 2 ms or more of a turn over 40 ms.
"""

import argparse
import cProfile
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

settings = tempfile.TemporaryDirectory()
os.environ["NAPARI_CONFIG"] = str(Path(settings.name) / "settings.yaml")
os.environ["MAMAMIA_CONFIG_DIR"] = settings.name

import napari  # noqa: E402
import numpy as np  # noqa: E402
from qtpy.QtCore import QPoint, Qt, QTimer  # noqa: E402
from qtpy.QtTest import QTest  # noqa: E402
from qtpy.QtWidgets import QWidget  # noqa: E402

from importing import N_PHASES, template, write_image, write_study  # noqa: E402
from main_thread import MeteredApplication, TurnSampler, rest, share_of, tree_of, wait_until  # noqa: E402
from memory_state import MemoryWalk, is_slow  # noqa: E402
from napari_mamamia.core.errors import MamamiaError  # noqa: E402
from napari_mamamia.io.layouts.find import find_data_set  # noqa: E402
from napari_mamamia.phantom.data_set import write_data_set  # noqa: E402
from napari_mamamia.widgets.base.layers import Role  # noqa: E402
from napari_mamamia.widgets.dock.place import dock_of  # noqa: E402
from napari_mamamia.widgets.dock.steps import PAGES  # noqa: E402
from napari_mamamia.widgets.refine.mask_watch import SaveState  # noqa: E402

TURN_MS, FIRST_PICTURE_S = 50.0, 0.6
EXCEPTIONS = {
    "three planes": (150.0, "napari's view of a plane comes into the window: all canvases resize"),
}
"""Actions with a limit of their own in ms, and what takes that long."""
HANGING_MS = {"first time": 1000.0, "again": 300.0}
"""Limits for a step of the hanging: the sum of its turns, drawing by OpenGL apart."""
SHAPE = (160, 448, 448)
SETTLED_MS = 700
TOLD_S, TREE_S = 0.04, 0.002
LEFT = Qt.MouseButton.LeftButton


class Driver:
    """A user of the window, who does one action after the other, and the accounts of them."""

    def __init__(self, application: MeteredApplication, profiled: str) -> None:
        self.application = application
        self.profiled = profiled
        self.found: dict[str, dict[str, float | str]] = {}
        self.memory = MemoryWalk()
        self.viewer = napari.Viewer(show=False)
        self.viewer.window.resize(1400, 900)
        self.viewer.window.add_plugin_dock_widget("napari-mamamia", "Cases")
        self.viewer.show()
        self.panel = dock_of(self.viewer)
        self.panel.session.set_reader("Ben")
        rest(SETTLED_MS)

    def do(self, name: str, act: Callable[[], object], until: Callable[[], object]) -> float:
        """Do an action, wait for its end and for what follows; return the wall seconds to it."""
        walk = self.memory.walk()
        account = self.application.begin()
        profile = cProfile.Profile() if name == self.profiled else None
        if profile:
            profile.enable()
        act()
        took = wait_until(until)
        rest(SETTLED_MS)
        if profile:
            profile.disable()
            pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(90)
        self.found[name] = {
            "longest": account.longest * 1e3,
            "ours": account.ours * 1e3,
            "drawn": account.drawn * 1e3,
            "collected": account.collected * 1e3,
            "walk": walk,
            "where": account.where,
        }
        if account.stacks:
            shares = {whose: 1e3 * s for whose, s in share_of(account.stacks).items()}
            said = ", ".join(f"{whose} {ms:.0f}" for whose, ms in shares.items())
            print(f"{name}: {1e3 * account.longest:.0f} ms ({said})", file=sys.stderr)
            if account.longest >= TOLD_S:
                print(*tree_of(account.stacks, TREE_S), sep="\n", file=sys.stderr, flush=True)
        return took

    # ------------------------------------------------------------------ hands

    @property
    def native(self) -> QWidget:
        """The widget that the image is drawn on."""
        return self.viewer.window._qt_viewer.canvas.native

    def click(self, name: str) -> None:
        """Click the control of a name."""
        QTest.mouseClick(self.panel.findChild(QWidget, name), LEFT)

    def turn_to(self, page: str) -> None:
        """Open a section by its step, or the work list, and its title."""
        pages = self.panel.pages
        step = next(p.step for p in (pages.work_list, *pages.panels) if page in p.step.sections)
        if self.panel.pages.step != step.name:
            self.click(f"step_{step.short}")
        if self.panel.page != page:
            self.click(f"section_{page.lower().split()[0]}")

    def double_click(self, row: int) -> None:
        """Double-click a row of the list of cases."""
        page = self.panel.cases_page
        where = page.table.visualRect(page.model.index(row, 0)).center()
        QTest.mouseClick(page.table.viewport(), LEFT, pos=where)
        QTest.mouseDClick(page.table.viewport(), LEFT, pos=where)

    def press(self, key: str) -> None:
        """Press a key over the image."""
        self.native.setFocus()
        QTest.keyClick(self.native, key)

    def drag(self) -> None:
        """Drag from the middle of the image to the right."""
        middle = QPoint(self.native.width() // 2, self.native.height() // 2)
        QTest.mouseMove(self.native, middle)
        QTest.mousePress(self.native, LEFT, pos=middle)
        for step in range(1, 25):
            QTest.mouseMove(self.native, middle + QPoint(3 * step, step))
            rest(12)
        QTest.mouseRelease(self.native, LEFT, pos=middle + QPoint(72, 24))

    def slide(self, axis: int, count: int) -> None:
        """Step a slider there and back, a turn of the event loop for each."""
        slider = self.viewer.window._qt_viewer.dims.slider_widgets[axis].slider
        for k in range(count):
            slider.setValue(slider.value() + (1 if k < count // 2 else -1))
            rest(30)

    def repeat(self, key: str, count: int) -> None:
        """Press a key several times."""
        for _ in range(count):
            self.press(key)
            rest(30)

    # ---------------------------------------------------------------- the day

    def idle(self) -> bool:
        """Whether nothing is being worked on."""
        return not self.panel.jobs._newest

    def is_open(self, case_id: str) -> bool:
        """Whether a case is on screen with all its phases."""
        session = self.panel.session
        return session.case_id == case_id and session.case.is_loaded and self.idle()

    def first_picture(self, row: int) -> float:
        """Open a case of the list; return the seconds until its picture was drawn."""
        case_id = self.panel.session.queue[row]
        drawn: list[float] = []

        def look(_event: object) -> None:
            if self.panel.session.case_id == case_id:
                drawn.append(1)

        canvas = self.viewer.window._qt_viewer.canvas._scene_canvas
        canvas.events.draw.connect(look)
        took = self.do("open case", lambda: self.double_click(row), lambda: drawn)
        canvas.events.draw.disconnect(look)
        return took

    def hang(self, folder: Path) -> float:
        """Open a case and step through its hanging; return the seconds to the first picture."""
        panel = self.panel
        QTimer.singleShot(0, lambda: panel.open_data_set(folder))
        wait_until(lambda: panel.session.opened and self.idle())
        first = self.first_picture(0)
        self.do("fill phases", lambda: None, lambda: self.is_open(panel.session.queue[0]))
        self.hanging()
        return first

    def use(self, folder: Path) -> float:
        """Do what a reader does with two cases; return the seconds to the first picture."""
        panel, session = self.panel, self.panel.session
        opens = lambda: QTimer.singleShot(0, lambda: panel.open_data_set(folder))  # noqa: E731
        self.do("list", opens, lambda: session.opened and self.idle())
        first = self.first_picture(0)
        one, two = session.queue[:2]
        self.do("fill phases", lambda: None, lambda: self.is_open(one))
        self.do("next case", lambda: self.click("header_next"), lambda: self.is_open(two))
        self.do("case before", lambda: self.click("header_previous"), lambda: self.is_open(one))
        self.do("phase step", lambda: self.repeat(".", 8), self.idle)
        self.do("slice step", lambda: self.slide(1, 20), self.idle)
        for page in (*PAGES[1:], PAGES[0]):
            self.do(f"page {page}", lambda page=page: self.turn_to(page), self.idle)
        self.turn_to("Predict")
        made = lambda: session.mask(Role.PREDICTION) and self.idle()  # noqa: E731
        self.do("predict", lambda: self.click("predict_start"), made)
        self.refine()
        self.do("score page", lambda: self.turn_to("Score"), self.idle)
        self.do("agreement", lambda: self.click("score_agreement"), self.idle)
        self.click("score_agreement")
        self.do("kinetics page", lambda: self.turn_to("Kinetics"), self.idle)
        self.do("kinetic map", lambda: self.press("k"), self.idle)
        self.press("k")
        self.do("subtraction", lambda: self.press("d"), self.idle)
        self.do("subtraction off", lambda: self.press("d"), self.idle)
        self.do("projection", lambda: self.press("i"), self.idle)
        self.do("projection off", lambda: self.press("i"), self.idle)
        self.planes()
        self.turn_to("Batch scoring")
        self.do("results table", lambda: self.click("batch_start"), self.idle)
        self.do("next case, edited", lambda: self.click("header_next"), lambda: self.is_open(two))
        self.do("back, own mask", lambda: self.click("header_previous"), lambda: self.is_open(one))
        self.hanging()
        self.import_study(folder.with_name("dicom"))
        return first

    def import_study(self, study: Path) -> None:
        """Look into a DICOM study of many series, take one away and back, import it."""
        panel, page = self.panel, self.panel.import_page
        model = page.study.model
        found = lambda: page.study.table.isVisible() and self.idle()  # noqa: E731
        self.do("import: table, pictures", lambda: panel.import_dicom(study), found)
        last = model.index(N_PHASES - 1, 0)
        for name, state in (("away", Qt.CheckState.Unchecked), ("back", Qt.CheckState.Checked)):
            tick = lambda state=state: model.setData(last, state, Qt.ItemDataRole.CheckStateRole)  # noqa: E731
            self.do(f"import: a series {name}", tick, found)
        page.form.target.setText(str(study.with_name("imported")))
        wait_until(page.start.isEnabled)
        is_there = lambda: self.is_open(panel.session.case_id) and not found()  # noqa: E731
        self.do("import: run, open", lambda: self.click("import_start"), is_there)

    def refine(self) -> None:
        """Edit the prediction: start, four strokes, undo, save."""
        panel = self.panel
        self.turn_to("Refine")
        rest(SETTLED_MS)
        live = lambda: panel.editing.live is not None and panel.measure.images is not None  # noqa: E731
        self.do("start edit", lambda: self.click("refine_from_prediction"), live)
        for tool in ("refine_tool_sphere", "refine_tool_smartpaint"):
            self.do(f"tool {tool.split('_')[-1]}", lambda tool=tool: self.click(tool), self.idle)
            for number in range(2):
                name = f"{'first' if number == 0 else 'next'} stroke, {tool.split('_')[-1]}"
                self.do(name, self.drag, self.idle)
        self.do("undo", lambda: self.click("refine_undo"), self.idle)
        saved = lambda: panel.editing.state is SaveState.SAVED  # noqa: E731
        self.do("save", lambda: self.click("refine_save"), saved)

    def hanging(self) -> None:
        """Step through the hanging protocol twice, then back to the reader's own view."""
        hanging, planes = self.panel.hanging, self.panel.planes
        for visit in ("first time", "again"):
            for step in hanging.plan().steps:
                shown = lambda step=step: (  # noqa: E731
                    hanging.step is step and not planes.is_building and self.idle()
                )
                self.do(f"hanging {step}, {visit}", lambda: self.press(Qt.Key.Key_PageDown), shown)
            leave = lambda: [self.press(Qt.Key.Key_PageUp) for _ in hanging.plan().steps]  # noqa: E731
            self.do(f"hanging left, {visit}", leave, lambda: hanging.step is None and self.idle())

    def planes(self) -> None:
        """Show three planes and step through them."""
        built = lambda: self.panel.planes.panes and not self.panel.planes.is_building  # noqa: E731
        self.do("three planes", lambda: self.press("j"), built)
        self.do("slice step, planes", lambda: self.slide(1, 20), self.idle)
        self.do("one plane", lambda: self.press("j"), lambda: not self.panel.planes.panes)


def write_dicom(study: Path) -> None:
    """Write a dynamic of 5 phases of 40 slices of 512 x 512, and 30 derived series of 3 slices."""
    study.mkdir()
    write_study(study, 40, 512)
    plane = np.arange(512 * 512, dtype=np.int16).reshape(512, 512)
    for number in range(20, 50):
        image = template(512, number % N_PHASES)
        image.SeriesNumber, image.SeriesInstanceUID = number, f"2.25.{number}"
        image.ImageType = ["DERIVED", "SECONDARY", "MIP"]
        for index in range(3):
            write_image(image, study / f"{number}_{index}.dcm", index, plane)


def run_once(options: argparse.Namespace) -> None:
    """Use the window once and print the accounts as one line."""
    sampler = TurnSampler() if options.turns else None
    driver = Driver(MeteredApplication(sys.argv[:1], sampler), options.profile)
    try:
        first = driver.hang(options.child) if options.hanging else driver.use(options.child)
        print(json.dumps({"first": first, "actions": driver.found}), flush=True)
    finally:  # a program that ends with threads at work and its window open ends with SIGSEGV
        driver.panel.close_down()
        driver.viewer.close()


def runs_of(folder: Path, options: argparse.Namespace) -> list[dict]:
    """Return the accounts of each run, all on the same files with a workspace of their own.

    With the masks that a run before left there, another would neither predict nor start an edit.
    """
    runs = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory(dir=folder.parent) as home:
            cases = Path(home) / "cases"
            shutil.copytree(folder, cases, copy_function=os.link)
            write_dicom(Path(home) / "dicom")
            command = [sys.executable, __file__, "--child", cases, "--profile", options.profile]
            command += [f"--{name}" for name in ("turns", "hanging") if getattr(options, name)]
            environment = dict(os.environ, HOME=home)
            made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            run = json.loads(made.stdout.splitlines()[-1])
            opened = [sys.executable, Path(__file__).with_name("panel_entry.py")]
            made = subprocess.run(opened, stdout=subprocess.PIPE, check=True)
        first = {"open the panel": json.loads(made.stdout.splitlines()[-1])}
        run["actions"] = first | run["actions"]
        runs.append(run)
    return runs


def median(runs: list[dict], name: str, what: str) -> float:
    return statistics.median(run["actions"][name][what] for run in runs)


def runs_with_usual_memory(runs: list[dict], name: str) -> list[dict]:
    """Return the runs in which memory was as fast as usual before an action; all if none was."""
    walks = [one["walk"] for run in runs for one in run["actions"].values()]
    usual = [run for run in runs if not is_slow(run["actions"][name]["walk"], walks)]
    return usual or runs


def report(runs: list[dict]) -> bool:
    """Print the medians; return whether all limits are kept."""
    first = statistics.median(run["first"] for run in runs)
    print(f"median of {len(runs)} runs, page cache warm, load {os.getloadavg()[0]:.1f}")
    print(f"first picture {first:.2f} s (limit {FIRST_PICTURE_S} s)")
    print(f"{'processor time, ms':26}{'longest turn':>13}{'sum':>8}{'drawn':>8}  longest is")
    over, left_out = [], []
    for name, last in runs[-1]["actions"].items():
        usual = runs_with_usual_memory(runs, name)
        left_out += [name] * (len(runs) - len(usual))
        longest, ours, drawn = (median(usual, name, what) for what in ("longest", "ours", "drawn"))
        limit, why = EXCEPTIONS.get(name, (TURN_MS, ""))
        mark = "*" if longest > limit else " "
        said = f"{last['where']}; limit {limit:.0f}: {why}" if why else last["where"]
        print(f"{name:26}{longest:12.0f}{mark}{ours:8.0f}{drawn:8.0f}  {said}")
        most = HANGING_MS.get(name.partition(", ")[2], float("inf"))
        over += [name] if longest > limit or ours > most else []
    collected = [max(one["collected"] for one in run["actions"].values()) for run in runs]
    print(f"full collections of garbage, when nobody acts: up to {max(collected):.0f} ms")
    if left_out:
        print(f"left out, the machine's memory was slow (memory_state.py): {', '.join(left_out)}")
    print(f"over {TURN_MS:.0f} ms or its own limit: {', '.join(over) or 'none'}")
    return not over and first <= FIRST_PICTURE_S


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond a limit")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--data", type=Path, help="keep the two cases in this folder, or use those in it"
    )
    parser.add_argument("--profile", default="", metavar="ACTION")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--hanging", action="store_true", help="only the steps of the hanging")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_once(options)
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = options.data or Path(made) / "cases"
        if not folder.exists():
            write_data_set(folder, n_cases=2, shape=SHAPE)
        try:
            n_cases = len(find_data_set(folder).cases)
        except MamamiaError as error:
            parser.error(f"--data: {error}")
        if n_cases < 2:
            parser.error(
                f"--data: expected a data set of at least 2 cases in {folder}, found {n_cases}"
            )
        kept = report(runs_of(folder, options))
    return int(options.check and not kept)


if __name__ == "__main__":
    sys.exit(main())
