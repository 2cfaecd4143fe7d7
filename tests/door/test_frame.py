"""The frame of the started program: line over the picture, folded panel, napari as before."""

import pytest
from program import wait_until
from test_screens import FILLED, faults, inside

pytestmark = pytest.mark.door

TREE = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
from qtpy.QtWidgets import QDockWidget, QToolBar, QWidget
viewer = napari.current_viewer()
panel, window = dock_of(viewer), viewer.window._qt_window

def walk(widget, path):
    path = f"{path}/{type(widget).__name__} {widget.objectName()} {widget.isHidden()}"
    rows = [path]
    for child in widget.children():
        if isinstance(child, QWidget) and child is not panel.docking.home:
            # The status line says where the pointer is, while there is something to say; scroll
            # bars come and go with what a list holds.
            is_other = child.isWindow() or type(child).__name__ == "QElidingLabel"
            is_other |= child.objectName().startswith("qt_scrollarea_")
            rows += [] if is_other else walk(child, path)
    return sorted(rows)

result = walk(window, "")
"""
FOREIGN = (
    TREE
    + """
from qtpy.QtWidgets import QLabel
viewer.window.add_dock_widget(QLabel("somebody else's"), name="Other plugin", area="left")
viewer.add_points([[0, 0]], name="somebody else's points")
window.activateWindow()
result = True
"""
)
WINDOWS = (
    TREE
    + """
from qtpy.QtWidgets import QApplication
shown = [one for one in QApplication.topLevelWidgets() if one.isVisible() and one is not window]
result = [one.objectName() or type(one).__name__ for one in shown]
"""
)
HELD = (
    TREE
    + """
tool = panel.active_tool.tool
result = [panel.fold.is_folded, panel.fold.is_alone, None if tool is None else tool.mode]
"""
)
RUN = (
    TREE
    + """
import time
from napari_mamamia.core.progress import report_progress

def work():
    for step in range(2000):
        report_progress(step, 2000, f"step {step}")
        time.sleep(0.01)

panel.jobs.start("long", "A long job", work, lambda _: None)
result = True
"""
)


def ask(program, code):
    return program.ask("evaluate", code=code)


def seen(program):
    return {row["name"] for row in program.widgets()}


def wait_for_case(program):
    wait_until(lambda: program.widgets(name="header_case", text="A_1"), "the case")
    loaded = TREE + "result = panel.session.case is not None and panel.session.case.is_loaded"
    wait_until(lambda: ask(program, loaded), "its phases")


def test_the_frame_comes_goes_and_folds_and_napari_is_as_before(start, small_data_set):
    """One window, one story: another plugin's dock and layer, the mode, the folds, a job."""
    program = start(
        "mamamia", "view", small_data_set, "--case", "A_1", "--panels", size=(1280, 720)
    )
    wait_for_case(program)
    assert ask(program, WINDOWS) == [], "the line's controls, whose line is not there yet"
    assert ask(program, FOREIGN)
    before = ask(program, TREE)

    program.click("header_napari")
    line = program.widget("case_line")
    assert line["rect"][3] <= 32
    for control in ("header_case", "header_reader", "header_keys", "line_mip"):
        rect = program.widget(control)["rect"]
        assert line["rect"][1] <= rect[1] < line["rect"][1] + line["rect"][3], control
    names = [row["name"] for row in program.widgets() if row["name"]]
    assert names.count("header_case") == 1
    assert "hanging_step" not in names, "the steps stand in the line alone"
    assert [w for w in program.widgets() if w["text"] == "somebody else's"], "not ours to hide"

    def has_room(when):
        wait_until(lambda: 0.7 < inside(program, FILLED) <= 1, f"the slice has the room, {when}", 9)

    has_room("opened by the command, another's layer beside it")
    assert not program.widgets(**{"class": "QMenuBar"})
    wait_until(lambda: not faults(program), "nothing cut, every control within reach", 20)
    wide = program.canvas()[2]
    assert ask(program, RUN)
    program.widget("header_progress")
    program.screen.key("F9")
    program.widget("panel_show")
    assert "mamamia_dock" not in seen(program)
    assert program.canvas()[2] > wide + 200
    assert program.widget("panel_strip")["rect"][2] == 24
    assert program.widgets(name="header_progress"), "the job is seen all the time"
    has_room("beside the folded panel")
    program.screen.key("F11")
    wait_until(lambda: "panel_strip" not in seen(program), "the picture alone")
    has_room("alone")
    program.screen.key("Escape")
    program.widget("mamamia_dock")
    has_room("beside the panel again")
    wait_until(lambda: "panel_strip" not in seen(program), "no strip beside the panel")
    program.screen.key("F11")
    wait_until(lambda: "mamamia_dock" not in seen(program), "the picture alone")
    program.screen.key("F4")
    program.widget("section_score")

    program.screen.key("F9")
    program.widget("panel_show")
    program.screen.key("F10")
    program.widget("mamamia_dock")
    wait_until(lambda: ask(program, TREE) == before, "napari's window is as before")
    assert program.widgets(name="header_progress"), "the mode ends no work"


@pytest.mark.night
def test_the_line_shows_the_hanging_and_what_is_armed_and_keeps_it_through_a_fold(
    start, small_data_set
):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    wait_for_case(program)
    program.click("line_mip")
    wait_until(lambda: ask(program, TREE + "result = str(panel.hanging.step)") == "mip", "a step")
    program.click("line_mip")
    wait_until(lambda: ask(program, TREE + "result = panel.hanging.step is None"), "the own view")
    ask(program, TREE + "panel.window().activateWindow(); panel.measuring.actions()['ruler']()")
    x, y, width, height = program.widget("line_armed")["rect"]

    def is_yellow():
        picture = program.screen.picture()[y : y + height, x : x + width]
        return (abs(picture.astype(int) - (255, 210, 77)).max(axis=2) < 12).mean() > 0.4

    wait_until(is_yellow, "the colour of what is drawn")
    program.screen.key("F9")
    program.widget("panel_show")
    assert ask(program, HELD) == [True, False, "ruler"]
    program.click("line_armed")
    wait_until(lambda: ask(program, HELD)[2] is None, "nothing in hand")


@pytest.mark.night
def test_the_work_list_has_the_window_until_a_case_is_opened_and_f1_goes_there_and_back(
    start, small_data_set
):
    program = start("mamamia", "view", small_data_set, size=(1280, 720))
    wait_until(lambda: program.widget("cases_table")["rect"][2] > 1000, "the list's room")
    assert not [name for name in seen(program) if name.startswith("header_mask")]
    program.click("cases_table")
    program.click("cases_open")
    loaded = TREE + "result = panel.session.case is not None and panel.session.case.is_loaded"
    wait_until(lambda: ask(program, loaded), "a case")
    wait_until(lambda: program.canvas()[2] > 600, "the picture's room")
    wait_until(lambda: program.canvas_picture().max() > 100, "the picture")
    ask(program, TREE + "window.activateWindow(); result = True")
    program.screen.key("F1")
    wait_until(lambda: program.widgets(name="cases_table"), "the list again")
    wait_until(lambda: program.widget("cases_table")["rect"][2] > 1000, "its room")
    program.screen.key("F1")
    wait_until(lambda: program.canvas()[2] > 600, "the picture again")
    program.screen.key("F1")
    program.widget("cases_table")
    program.click("header_napari")
    wait_until(lambda: program.canvas()[2] > 300, "napari has its picture beside the list")
    program.click("cases_export_all")
    program.widget("export_missing")
