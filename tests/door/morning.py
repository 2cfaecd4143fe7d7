"""A reader's hand on the started window: what it does is counted, and what it costs the window."""

from dataclasses import dataclass

from program import wait_still, wait_until

CASE = """
import napari
from qtpy.QtWidgets import QApplication
from napari_mamamia.widgets.dock.dock import MamamiaDock
panel = next(w for w in QApplication.allWidgets() if isinstance(w, MamamiaDock))
"""
LOADED = CASE + "case = panel.session.case; result = bool(case and case.is_loaded) and case.case_id"
IDLE = CASE + "result = panel.jobs.wait(0) and not panel.planes.is_building"
ITEM = """
from qtpy.QtWidgets import QApplication
box = next(w for w in QApplication.allWidgets() if w.objectName() == {name!r} and w.isVisible())
view = box.view()
at = box.findData({value!r})
place = view.viewport().mapToGlobal(view.visualRect(box.model().index(at, 0)).center())
result = [view.isVisible(), place.x(), place.y()]
"""
ROW = """
from qtpy.QtWidgets import QApplication
table = next(w for w in QApplication.allWidgets() if w.objectName() == "cases_table")
model = table.model()
row = next(r for r in range(model.rowCount()) if model.index(r, 0).data() == {case!r})
place = table.viewport().mapToGlobal(table.visualRect(model.index(row, 0)).center())
result = [place.x(), place.y()]
"""
MIDDLE = (
    CASE
    + """
import numpy as np
from napari_mamamia.widgets.base.layers import Role
viewer = panel.viewer
canvas = viewer.window._qt_viewer.canvas.native
mask = panel.scene.layer(Role.PREDICTION) or panel.scene.layer(Role.REFINED)
data = np.asarray(mask.data)
place = viewer.dims.current_step[-data.ndim:]
row, column = np.argwhere(data[place[0]] if data.ndim == 3 else data).mean(axis=0)
down, across = mask.data_to_world((place[0], row, column))[-2:]
camera = viewer.scene.camera
ways = [str(way) for way in camera.orientation2d]
signs = (-1 if ways[1] == "left" else 1, -1 if ways[0] == "up" else 1)
x = canvas.width() / 2 + (across - camera.center[-1]) * camera.zoom * signs[0]
y = canvas.height() / 2 + (down - camera.center[-2]) * camera.zoom * signs[1]
from qtpy.QtCore import QPoint
corner = canvas.mapToGlobal(QPoint(0, 0))
result = [corner.x() + round(x), corner.y() + round(y), camera.zoom]
"""
)


@dataclass
class Count:
    """What one case took: presses of keys, clicks, strokes on the image, seconds.

    `seconds` are processor seconds of the window's main thread, from the case before being left to
    this one being accepted.
    """

    case: str
    keys: int = 0
    clicks: int = 0
    strokes: int = 0
    seconds: float = 0.0

    @property
    def actions(self) -> int:
        """All of them."""
        return self.keys + self.clicks + self.strokes


class Hand:
    """Mouse and keys; each touch is counted, what is only looked at is not."""

    def __init__(self, program, picture=None):
        self.program, self.screen = program, program.screen
        self.picture = picture or (lambda _name: None)
        self.count = Count("")
        self._began = 0.0

    def ask(self, code):
        return self.program.ask("evaluate", code=code)

    def begin(self, case):
        """Count anew, for a case that opens."""
        self.count = Count(case)
        wait_until(lambda: self.ask(LOADED) == case, f"{case} open")
        self.rest()

    def end(self):
        """Return what the case took."""
        now = self.program.ask("seconds")
        self.count.seconds = round(now - self._began, 2)
        self._began = now
        return self.count

    def rest(self):
        """Wait until the window has nothing to do."""
        self.screen.xdotool("sleep", 0.2)
        wait_until(lambda: self.ask(IDLE), "the window at rest")
        self.screen.xdotool("sleep", 0.3)
        wait_until(lambda: self.ask(IDLE), "the window at rest")

    def key(self, *names):
        """Press keys, one action each."""
        for name in names:
            self.screen.key(name)
            self.count.keys += 1
            self.rest()

    def click(self, name):
        """Click a control of a name."""
        self.program.click(name)
        self.count.clicks += 1
        self.rest()

    def answer(self, question, value):
        """Choose a term: a click opens the box, another takes the term."""
        name = f"findings_answer_{question}"
        self.choose(name, value)

    def _click_item(self, name, value):
        def place():
            is_shown, *where = self.ask(ITEM.format(name=name, value=value))
            return is_shown and where

        self.screen.click(*wait_still(place, f"the terms of {name}"))

    def choose(self, name, value):
        """Take an item of a box: two clicks."""
        self.program.click(name)
        self._click_item(name, value)
        self.count.clicks += 2
        self.rest()

    def wait_left(self, case):
        """Wait until another case is open."""
        wait_until(lambda: self.ask(LOADED) not in (False, case), f"{case} left")
        self.rest()

    def middle(self):
        """Return where on the screen the mask's middle is drawn, and pixels per mm."""
        return wait_still(lambda: self.ask(MIDDLE), "the middle of the mask")

    def stroke(self, across_mm, down_mm, length_mm=2.0):
        """Draw from a place beside the middle of the mask."""
        x, y, zoom = self.middle()
        x, y = round(x + across_mm * zoom), round(y + down_mm * zoom)
        end = x + round(length_mm * zoom)
        self.screen.drag([(x, y), (end, y), (end, y + 1)])
        self.count.strokes += 1
        self.rest()


def open_first(program, case):
    """Double-click the first case of the list."""
    code = ROW.format(case=case)
    place = wait_still(lambda: program.ask("evaluate", code=code), f"the row of {case}")
    program.screen.click(*place, times=2)


# ------------------------------------------------------------------- five cases


HUNG = CASE + "result = len(panel.hanging.plan().steps), panel.hanging.step is None"


def _hang(hand, unwanted=0):
    """Walk the steps that the case has, to its lesion first; the first case is not hung yet."""
    n_steps, is_own_view = hand.ask(HUNG)
    if is_own_view:
        hand.key("Next")
    hand.picture(f"{hand.count.case}_1")
    hand.key("g")
    for number in range(1, n_steps - unwanted):
        hand.key("Next")
        hand.picture(f"{hand.count.case}_{number + 1}")


def _describe_exam(hand, fgt, bpe):
    """Say what the form asks of the exam; page Findings stays open from the first case on."""
    if not hand.program.widgets(name="section_findings"):
        hand.key("F2")
    if not hand.program.widgets(name="findings_place_case"):
        hand.click("section_findings")
    hand.answer("fgt", fgt)
    hand.answer("bpe", bpe)


def _describe_mass(hand, number, category, *, margin="irregular", side=""):
    hand.answer(f"finding_{number}", "mass")
    hand.answer(f"mass.shape_{number}", "irregular")
    hand.answer(f"mass.margin_{number}", "not_circumscribed")
    hand.answer(f"mass.margin_not_{number}", margin)
    hand.answer(f"mass.internal_{number}", "heterogeneous")
    if side:
        hand.click(f"findings_place_{side}")
    hand.key(f"alt+{category}")


def _describe_non_mass(hand, number, category):
    hand.answer(f"finding_{number}", "nme")
    hand.answer(f"nme.distribution_{number}", "segmental")
    hand.answer(f"nme.internal_{number}", "clumped")
    hand.key(f"alt+{category}")


def _accept_prediction(hand, n_strokes=0):
    hand.key("F3")
    hand.click("refine_from_prediction")
    if n_strokes:
        hand.key("q")
        for across, down in ((5.0, 0.0), (-5.0, 1.0), (0.0, 5.0))[:n_strokes]:
            hand.stroke(across, down)
    hand.picture(f"{hand.count.case}_mask")
    hand.key("ctrl+Return")


def read_mass(hand):
    """A mass whose mask lacks three parts: five looks, the form, a key image, three strokes."""
    _hang(hand)
    _describe_exam(hand, "c", "mild")
    hand.click("findings_place_lesion")
    _describe_mass(hand, 1, 5, margin="spiculated")
    hand.key("shift+k")
    hand.picture(f"{hand.count.case}_form")
    _accept_prediction(hand, 3)


def read_normal(hand):
    """Nothing in either breast: three looks, the form, the next case without a mask."""
    _hang(hand, unwanted=1)
    _describe_exam(hand, "b", "minimal")
    for side in ("right", "left"):
        hand.click(f"findings_place_{side}")
        hand.key("alt+1")
    hand.picture(f"{hand.count.case}_form")
    hand.key("n")


def read_non_mass(hand):
    """Non-mass enhancement in both breasts, as it was predicted."""
    _hang(hand)
    _describe_exam(hand, "c", "moderate")
    hand.click("findings_place_lesion")
    for number in list_lesions(hand):
        if number != "1":
            hand.choose("findings_lesion", number)
        _describe_non_mass(hand, number, 4)
    hand.picture(f"{hand.count.case}_form")
    _accept_prediction(hand)


def read_sagittal(hand):
    """A mass in sagittal slices of one breast, whose side the reader says; as it was predicted."""
    _hang(hand)
    _describe_exam(hand, "c", "mild")
    hand.click("findings_place_lesion")
    _describe_mass(hand, 1, 4, side="right")
    hand.picture(f"{hand.count.case}_form")
    _accept_prediction(hand)


def read_prior(hand):
    """A mass that grew within a year: the exam before beside it, and a ruler across it."""
    _hang(hand)
    _describe_exam(hand, "b", "minimal")
    hand.click("findings_place_lesion")
    _describe_mass(hand, 1, 5)
    hand.key("shift+m")
    hand.stroke(-10.0, 0.0, 20.0)
    hand.picture(f"{hand.count.case}_ruler")
    hand.key("Escape")
    _accept_prediction(hand)


def list_lesions(hand):
    """Return the numbers of the lesions that the window offers to describe."""
    return hand.ask(CASE + "result = list(panel.kinetics.findings.list_lesions())")


READS = (read_mass, read_normal, read_non_mass, read_sagittal, read_prior)


def read_morning(hand, cases):
    """Read the five cases one after the other; return what each took."""
    found = []
    open_first(hand.program, cases[0])
    for case, read in zip(cases, READS, strict=True):
        hand.begin(case)
        if not found:
            hand.end()  # what the start of the program cost is no case's
            hand.begin(case)
        read(hand)
        hand.wait_left(case)
        found.append(hand.end())
    return found
