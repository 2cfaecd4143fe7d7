"""A study in a started program: what was read before it began is not shown in it; its clock."""

import pytest
from program import wait_until
from test_blind_reading import PANEL

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.plan_study import (
    StudyPeople,
    draft_study,
    freeze_study,
)
from napari_mamamia.services.case.data_set import open_data_set

pytestmark = [pytest.mark.door, pytest.mark.night]  # by day: test_first_case, test_review_page

HELD = """
import threading
from pathlib import Path
gate = threading.Event()
list_cases = panel.listing._list_cases
def list_slowly(*given, **named):
    was_blind = panel.session.blinding.is_blind
    result = list_cases(*given, **named)
    if not was_blind:
        print("READ", flush=True)
        gate.wait(60)
        print("ANSWERED", flush=True)
    return result
panel.listing._list_cases = list_slowly
panel.viewer.layers.events.inserted.connect(lambda event: print(event.value.name, flush=True))
panel.gate = gate
panel.open_data_set(Path({0!r}), "A_1")
"""
SEEN = "result = [layer.name for layer in panel.viewer.layers if layer.visible]"
IS_READ = (
    "result = panel.session.case is not None and panel.session.blinding.is_blind"
    " and panel.session.case.is_loaded and panel.jobs.wait(0)"
)
LISTED = "result = list({bool(row.files.reference) for row in panel.session.rows.values()})"
SECONDS = "result = panel.flow('Review').reading.clock.seconds"
SOON_AT_REST = """
from napari_mamamia.features.review.widgets import study_case
study_case._INPUT_COUNTS_MS = 1500
"""


def inside(program, code):
    return program.ask("evaluate", code=PANEL + code)


@pytest.fixture
def study(small_data_set, tmp_path):
    folder = tmp_path / "STUDY"
    plan = StudyPlan("Blind", ReadingMode.ARBITRATION, 2, ALL_HIDDEN, seed=7)
    people = StudyPeople(("Lea Lead",), ("Ana", "Ben"), ("Jo Judge",))
    freeze_study(draft_study(open_data_set(small_data_set), plan, people), folder)
    return folder


def is_whole(control):
    return control["visible_rect"] and control["visible_rect"][2:] == control["rect"][2:]


def name_reader(program):
    program.turn_to("Review")
    program.click("review_who")
    program.screen.xdotool("type", "--delay", 60, "Ana")
    program.screen.key("Return")
    program.click("review_begin")


def begin_study(program):
    name_reader(program)
    program.click("review_next")
    wait_until(lambda: inside(program, IS_READ), "the study's first case")


def test_what_was_read_before_a_study_began_is_not_shown_in_it(start, study, small_data_set):
    """Somebody opens a case of a folder that is slow to come, and begins the study meanwhile."""
    program = start("mamamia", "view", "--study", study, size=(1280, 720), QT_FONT_DPI="144")
    program.widget("review_who")
    inside(program, HELD.format(str(small_data_set)))
    wait_until(lambda: "READ" in program.output, "a list that was read with its references")
    begin_study(program)
    wait_until(lambda: is_whole(program.widget("review_accept")), "Accept in sight", 20)
    inside(program, "panel.gate.set()")
    wait_until(lambda: "ANSWERED" in program.output, "the late answer")
    program.screen.xdotool("sleep", 2)
    wait_until(lambda: inside(program, IS_READ), "the study's case, still")
    shown = [line for line in program.output.splitlines() if line not in ("READ", "ANSWERED")]
    assert shown, "no layer of the study's case"
    assert not [name for name in shown if "reference" in name], shown
    assert inside(program, SEEN) == shown[-1:]
    assert inside(program, "result = [str(role) for role in panel.session.masks]") == []
    assert inside(program, LISTED) == [False]


def test_a_blind_study_does_not_begin_where_cases_were_open(start, study, small_data_set):
    program = start("mamamia", "view", "--study", study, size=(1280, 720))
    program.widget("review_who")
    assert program.ask("drop", name="mamamia_dock", paths=[str(small_data_set)])
    program.wait_for_text("3 cases")
    name_reader(program)
    program.wait_for_text("in a new window")
    assert not program.widgets(name="review_next")


def test_the_clock_of_a_study_counts_while_mouse_and_keys_are_used(start, study, tmp_path):
    program = start("mamamia", "view", "--study", study, size=(1280, 720))
    program.widget("review_who")
    inside(program, SOON_AT_REST)
    begin_study(program)
    x, y, width, height = program.canvas()
    screen, middle = program.screen, (x + width // 2, y + height // 2)

    def use(act, times=4):
        before = inside(program, SECONDS)
        for at in range(times):
            act(at)
            screen.xdotool("sleep", 1)
        return inside(program, SECONDS) - before

    assert use(lambda at: screen.xdotool("mousemove", middle[0] + at, middle[1])) >= 3
    screen.xdotool("sleep", 3)  # hands off: what counts after the last move is over
    assert use(lambda at: None) == 0
    assert use(lambda at: screen.key("period" if at % 2 else "comma")) >= 3
    screen.xdotool("sleep", 3)
    assert use(lambda at: screen.xdotool("click", 4 + at % 2)) >= 3  # the wheel
    screen.xdotool("sleep", 3)
    assert use(lambda at: screen.drag([middle, (middle[0] + 5, middle[1])])) >= 3
    inside(program, "panel.flow('Review').reading.accept()")
    counted = inside(program, SECONDS)
    program.click("review_empty")
    store = FolderStore(study, tmp_path / "another home")

    def handed_in():
        views = load_state(store).cases
        return [one for view in views for one in view.readings if one.active_s]

    (reading,) = wait_until(handed_in, "what was handed in")
    assert counted <= reading.active_s <= counted + 5
