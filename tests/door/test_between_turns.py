"""What happens in a started program between the two turns in which a case is opened."""

import pytest
from program import close_by_cross, wait_for_end, wait_until
from test_blind_reading import PANEL

pytestmark = [pytest.mark.door, pytest.mark.night]  # by day: tests/window/test_first_case.py

CLOSE_WINDOW = "panel.window().close()"
CLOSE_PANEL = "panel.docking.home.close()"
BETWEEN = """
from napari_mamamia.widgets.base.layers import Role
late = panel.opening._late
begin, acts = late.start, [1]
def act(steps):
    begin(steps)
    if acts and panel.session.case is None and panel.scene.layer(Role.PHASE) is not None:
        acts.pop()
        print("BETWEEN", flush=True)
        {act}
late.start = act
"""
SEEN = "result = [layer.name for layer in panel.viewer.layers if layer.visible]"


@pytest.fixture
def opening_window(start, small_data_set):
    """Return a function that opens a case and acts between its two turns; gives the program."""

    def begin(act):
        program = start("mamamia", "view", small_data_set)
        program.wait_for_text("3 cases")
        idle = f"{PANEL}result = panel.jobs.wait(0)"
        wait_until(lambda: program.ask("evaluate", code=idle), "what napari does once")
        program.ask("evaluate", code=PANEL + BETWEEN.format(act=act))
        program.click("cases_open")
        wait_until(lambda: program.output, "the turn between")
        return program

    return begin


def test_a_window_that_is_closed_between_the_turns_ends_without_a_word(opening_window):
    program = opening_window(CLOSE_WINDOW)
    assert wait_for_end(program) == 0, program.output
    assert program.output == "BETWEEN\n"


def test_a_panel_that_is_closed_between_the_turns_has_the_case_when_it_is_back(opening_window):
    program = opening_window(CLOSE_PANEL)
    has_case = f"{PANEL}result = panel.session.case is not None and panel.jobs.wait(0)"
    wait_until(lambda: program.ask("evaluate", code=has_case), "the case")
    assert not program.ask("evaluate", code=f"{PANEL}result = panel.isVisible()")
    names = ["A_1 phases", "A_1 reference"]
    wait_until(
        lambda: program.ask("evaluate", code=PANEL + SEEN) == names, "the mask, a turn later"
    )
    program.ask("evaluate", code=f"{PANEL}panel.docking.home.show()")
    wait_until(lambda: program.widgets(name="header_mask_reference"), "the panel")
    assert program.ask("evaluate", code=f"{PANEL}result = panel.session.case_id") == "A_1"
    assert close_by_cross(program) == 0
    assert program.output == "BETWEEN\n"
