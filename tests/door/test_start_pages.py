"""The steps of docs/start, done with mouse and keys in the started program as the pages tell them.

Pictures go to MAMAMIA_SCREENSHOTS; those of the pages are taken so (`make pictures`).
"""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest
from program import Program, Screen, wait_still, wait_until
from test_tools import Reader

pytestmark = [pytest.mark.door, pytest.mark.night]

SIZE = """
import napari
window = napari.current_viewer().window
window.set_geometry(0, 0, 1400, 900)
result = True
"""
ROW = """
from qtpy.QtWidgets import QApplication
table = next(w for w in QApplication.allWidgets() if w.objectName() == "{table}")
model = table.model()
row = next(r for r in range(model.rowCount()) if model.index(r, 0).data() == "{case}")
table.scrollTo(model.index(row, 0))
place = table.viewport().mapToGlobal(table.visualRect(model.index(row, 0)).center())
result = [place.x(), place.y()]
"""
CASE = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
panel = dock_of(napari.current_viewer())
case = panel.session.case
result = case is not None and case.is_loaded and case.case_id
"""
ZOOM = """
import napari
napari.current_viewer().scene.camera.zoom *= 4
result = True
"""


@pytest.fixture(scope="module")
def day(scripts):
    """The folder of the day and the window on its demo, opened as the pages say."""
    with (
        tempfile.TemporaryDirectory(prefix="ana") as made,  # its name is in the pictures
        Screen(1400, 900) as screen,
    ):
        folder = Path(made)
        demo = [scripts / "mamamia", "demo", "--out", folder / "demo"]
        subprocess.run(demo, check=True, capture_output=True, timeout=240)
        with Program([str(scripts / "mamamia"), "view", "demo/dataset"], screen, folder) as program:
            program.widget("cases_table")
            assert program.ask("evaluate", code=SIZE)
            yield folder, program


@pytest.fixture
def keep(day, picture_folder):
    """Return a function that keeps the screen as a picture."""

    def save(name):
        day[1].screen.xdotool("sleep", 1)
        day[1].screen.picture(picture_folder / f"{name}.png")

    return save


def click_text(program, text):
    def places():
        return [row["centre"] for row in program.widgets(text=text) if row["enabled"]]

    program.screen.click(*wait_still(places, text)[0])


def open_from(program, table, case):
    code = ROW.format(table=table, case=case)
    place = wait_still(lambda: program.ask("evaluate", code=code), f"the row of {case}")
    program.screen.click(*place, times=2)
    wait_until(lambda: program.ask("evaluate", code=CASE) == case, f"{case} open")


def test_a_radiologist_predicts_corrects_saves_and_exports(day, keep):
    folder, program = day
    screen, reader = program.screen, Reader(program)
    keep("start_cases")

    program.click("header_reader")
    screen.key("A", "n", "a")
    program.click("header_reader_ok")
    program.wait_for_text("Ana")
    open_from(program, "cases_table", "PHANTOM_006")
    screen.click(*reader.middle)
    screen.key("g")
    keep("start_case")

    reader.turn_to("Predict", "predict_start")
    program.click("predict_start")
    click_text(program, "Replace prediction")
    program.widget("predict_candidates")
    keep("start_predict")

    reader.turn_to("Refine", "refine_from_prediction")
    program.click("refine_from_prediction")
    program.widget("refine_accept")
    assert program.ask("evaluate", code=ZOOM)
    screen.key("g")
    screen.key("q")
    reader.wait_for_sign("#009E73")
    reader.drag()
    reader.point(60, 20)
    program.wait_for_text("strokes kept")
    keep("start_refine")
    program.click("refine_accept")
    wait_until(lambda: program.ask("evaluate", code=CASE) == "PHANTOM_007", "the next case")
    saved = folder / "demo" / "workspace" / "refined" / "Ana"
    assert (saved / "PHANTOM_006.nii.gz").is_file()
    told = json.loads((saved / "PHANTOM_006.json").read_text("utf-8"))
    assert "Ana" in json.dumps(told)

    reader.turn_to("Export", "export_start")
    program.click("export_start")
    program.widget("export_open")
    keep("start_export")


def test_a_reviewer_scores_opens_the_worst_case_looks_at_its_errors_and_tags_it(day, keep):
    folder, program = day
    reader = Reader(program)
    reader.turn_to("Batch", "batch_start")
    program.click("batch_start")
    program.widget("batch_report")
    keep("start_scores")
    open_from(program, "results_table", "PHANTOM_006")
    program.wait_for_text("error 1 of")
    keep("start_errors")
    program.screen.click(*reader.middle)
    program.screen.key("g")
    program.wait_for_text("error 2 of")
    reader.turn_to("Score", "score_tags")
    program.click("score_tag_artefact")
    keep("start_tag")
    assert (folder / "demo" / "workspace" / "scores" / "kinetic" / "report.html").is_file()
    numbers = (folder / "demo" / "workspace" / "scores" / "kinetic" / "summary.json").read_text()
    fairness = json.loads(numbers)["task1"]["fairness_by_variable"]
    assert None not in [fairness[name] for name in ("age", "menopausal_status", "breast_density")]
