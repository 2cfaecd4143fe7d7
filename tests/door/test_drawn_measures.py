"""A ruler drawn in the started program, which is killed: the next one and a report tell it."""

import csv
import os
import signal
import subprocess

import pytest
from program import count_colour, wait_until

from napari_mamamia.io.workspace.measurements import read_measurements
from napari_mamamia.widgets.measure.overlay import OTHERS_COLOUR

pytestmark = [pytest.mark.door, pytest.mark.night]

ZOOM = """
import napari
result = float(napari.current_viewer().scene.camera.zoom)
"""
LINES = """
import napari
from qtpy.QtWidgets import QListView
from napari_mamamia.widgets.dock.place import dock_of
model = dock_of(napari.current_viewer()).findChild(QListView, "measure_list").model()
result = [model.index(at, 0).data() for at in range(model.rowCount())]
"""
LENGTH = 120
"""Pixels of the drag, which the camera's zoom makes mm."""


def test_a_ruler_is_there_after_a_kill_and_the_report_tells_its_length(
    start, scripts, small_data_set, tmp_path
):
    workspace = tmp_path / "my data set-workspace"
    first = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    first.wait_for_text("A_1")
    wait_until(lambda: first.canvas_picture().max() > 100, "the first phase")
    first.turn_to("View")
    x, y, width, height = first.canvas()
    middle = (x + width // 2, y + height // 2)
    first.click("measure_fold")
    first.click("measure_ruler")
    left, right = middle[0] - LENGTH // 2, middle[0] + LENGTH // 2
    first.screen.drag([(left, middle[1]), (middle[0], middle[1]), (right, middle[1])])
    first.widget("header_reader_name")
    first.screen.xdotool("type", "Ana")
    first.screen.key("Return")
    wait_until(lambda: read_measurements(workspace).items, "the record of what was drawn")
    expected_mm = LENGTH / first.ask("evaluate", code=ZOOM)
    os.killpg(first.process.pid, signal.SIGKILL)

    second = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    second.wait_for_text("A_1")
    second.turn_to("View")
    second.click("measure_fold")
    (line,) = wait_until(lambda: second.ask("evaluate", code=LINES), "the list of drawings")
    n_pixels = count_colour(second.canvas_picture(), OTHERS_COLOUR, tolerance=8)
    second.end()

    out = tmp_path / "report"
    command = [scripts / "mamamia", "report", small_data_set, "--case", "A_1", "--out", out]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    rows = csv.DictReader((out / "measures.csv").open())
    (row,) = [row for row in rows if row["source"] == "drawn"]
    assert (row["reader"], row["unit"]) == ("Ana", "mm")
    # a pixel of the screen at each end
    assert float(row["number"]) == pytest.approx(expected_mm, abs=2 * expected_mm / LENGTH)
    assert n_pixels > LENGTH / 3  # dashed: nobody gave a name in the second program
    assert f"{float(row['number']):.1f} mm" in line
