"""Studies as scanners leave them, dropped on the started program, chosen from, imported, opened.

One program for all, as on a working day: by day a messy study, and a choice that a tick decides;
the others at night (by day tests/widgets/test_import_page.py chooses, and tests/io reads them).
Pictures go to MAMAMIA_SCREENSHOTS; those of ``docs/pictures.md`` are taken so.
"""

import json
import re

import nibabel as nib
import numpy as np
import pytest
from program import Program, Screen, wait_still, wait_until
from test_screens import MARK_CONTRAST, contrast
from tests import protocol_studies as studies
from tests.services.seg_of_case import make_seg

pytestmark = pytest.mark.door

PANEL = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QAbstractButton
panel = dock_of(napari.current_viewer())
study = panel.import_page.study
"""


@pytest.fixture(scope="module")
def program(scripts, tmp_path_factory):
    """The started program on a small screen, for all stories."""
    folder = tmp_path_factory.mktemp("day")
    with (
        Screen(1280, 720) as screen,
        Program([str(scripts / "napari"), "-w", "napari-mamamia", "Cases"], screen, folder) as made,
    ):
        made.widget("step_bar")
        yield made


def inside(program, code):
    """Run code in the started program, where `panel` is our dock and `study` the one on screen."""
    return program.ask("evaluate", code=PANEL + code)


@pytest.fixture
def dropped(program, tmp_path, picture_folder):
    """Return a function that writes a study, drops it, and waits for its table and pictures."""

    def drop(write):
        folder = tmp_path / write.__name__
        phases = write(folder)
        assert program.ask("drop", name="CanvasBackendDesktop", paths=[str(folder)])
        wait_until(lambda: inside(program, SETTLED) and table(program), "the table of the study")
        program.window_picture(picture_folder / f"import_{write.__name__}.png")
        return phases

    return drop


SETTLED = """
lanes = ("look", "judge", "preview", "picture", "check", "run")
busy = any(panel.jobs.is_running(f"import {lane}") for lane in lanes)
result = not busy and panel.import_page.state.value == "found"
"""


def table(program):
    """Return of each row: number, what it is, whether it is ticked, the brightness of its picture.

    The brightness is the mean grey of the picture, of 255, and None where there is no picture.
    """
    code = """
result = []
for row in range(study.model.rowCount()):
    index, kind = study.model.index(row, 0), study.model.index(row, 1)
    picture = index.data(Qt.ItemDataRole.DecorationRole).toImage()
    points = [(x, y) for x in range(picture.width()) for y in range(picture.height())]
    seen = [picture.pixelColor(*at) for at in points]
    greys = [colour.value() for colour in seen if colour.alpha()]
    ticked = index.data(Qt.ItemDataRole.CheckStateRole)
    result.append([
        study.model.rows[row].number,
        kind.data().replace("\\u00a0", " ").split("\\n")[0],
        None if ticked is None else Qt.CheckState(ticked) == Qt.CheckState.Checked,
        sum(greys) / len(greys) if greys else None,
    ])
"""
    return inside(program, code)


def tick_of(program, row):
    """Scroll to the tick of a row and return its middle on the screen."""
    place = f"""
study.table.scrollTo(study.model.index({row}, 0))
rect = study.table.visualRect(study.model.index({row}, 0))
area = panel.import_page.area
spot = study.table.viewport().mapTo(area.widget(), rect.center())
area.ensureVisible(spot.x(), spot.y(), 0, 30)
at = study.table.viewport().mapToGlobal(QPoint(rect.left() + 10, rect.center().y()))
result = [at.x(), at.y()]
"""
    return inside(program, place)


ANSWER = """
start = panel.findChild(QAbstractButton, "import_start")
result = [start.text(), *(
    [str(study.model.index(row, column).data(role)) for column, role in (
        (0, Qt.ItemDataRole.CheckStateRole), (1, Qt.ItemDataRole.DisplayRole)
    )]
    for row in range(study.model.rowCount())
)]
"""


def judged_again(program, act):
    """Do something to the choice, and wait until the page has answered it.

    A page at rest may not have seen the click yet: it is waited for what it says to change.
    """
    before = inside(program, ANSWER)
    act()
    wait_until(
        lambda: inside(program, SETTLED) and inside(program, ANSWER) != before,
        "the study judged again",
    )


def click_tick(program, row):
    """Click the tick of a row with the mouse."""
    place = wait_still(lambda: tick_of(program, row), f"the tick of row {row}")
    judged_again(program, lambda: program.screen.click(*place))


def import_it(program, case_id):
    """Press the button, wait for the open case with all its phases, and return its times."""
    program.click("import_start")
    code = f"result = panel.session.case_id == {case_id!r} and panel.session.case.is_loaded"
    wait_until(lambda: inside(program, code), f"{case_id} open")
    return inside(program, "result = list(panel.session.case.times_s)")


def assert_files(program, case_id, phases, times):
    """Compare what was written with what was scanned: the values of each phase, and the times."""
    data_set = program.folder / "mamamia-cases"
    files = sorted((data_set / "images" / case_id).glob("*.nii.gz"))
    assert len(files) == len(phases)
    for file, phase in zip(files, phases, strict=True):
        found = np.asarray(nib.load(file).dataobj)
        assert found.shape == phase.shape[::-1]
        assert np.array_equal(np.sort(found, axis=None), np.sort(phase, axis=None))
    texts = [path.read_text() for path in data_set.rglob("*.json") if case_id in path.name]
    assert texts
    assert not any("Muster" in text or re.search(r"\b4711\b", text) for text in texts)
    assert any(list(times) in _lists(json.loads(text)) for text in texts)


def _lists(content):
    """Return every list of numbers in a JSON document."""
    if isinstance(content, dict):
        return [found for value in content.values() for found in _lists(value)]
    if isinstance(content, list):
        return [content, *(found for value in content for found in _lists(value))]
    return []


def test_of_a_messy_siemens_study_the_dynamic_alone_becomes_the_case(program, dropped):
    phases = dropped(studies.messy_siemens)
    rows = table(program)
    said = {number: what for number, what, _, _ in rows}
    assert [said[5 + k] for k in range(5)] == ["DCE: pre", *(f"DCE: post {k}" for k in range(1, 5))]
    assert said[1].startswith("left out: localiser")
    assert said[2].startswith("left out: another sequence (spin echo")
    assert all(said[20 + k].startswith("left out: motion-corrected copy") for k in range(5))
    assert all(said[30 + k].endswith("(SUB in ImageType)") for k in range(1, 5))
    assert said[40].endswith("(MIP_TRA in ImageType)")
    assert said[51].startswith("left out: diffusion (ADC")
    assert [number for number, _, ticked, _ in rows if ticked] == [5, 6, 7, 8, 9]
    bright = {number: grey for number, _, _, grey in rows}
    assert None not in bright.values()
    x, y = wait_still(
        lambda: tick_of(program, 0), "a tick"
    )  # of the localiser, which is not ticked
    box = program.screen.picture()[y - 12 : y + 12, x - 8 : x + 10]
    assert contrast(box) >= MARK_CONTRAST
    assert max(bright[30 + k] for k in range(1, 5)) < min(bright[5 + k] for k in range(5))
    assert import_it(program, "messy_siemens") == [0, 90, 180, 270, 360]
    assert_files(program, "messy_siemens", phases, (0, 90, 180, 270, 360))


@pytest.mark.night
def test_of_a_philips_mdixon_the_water_is_taken_and_each_part_is_seen(program, dropped):
    phases = dropped(studies.philips_mdixon)
    rows = table(program)
    assert [(what.split(" (")[0], ticked) for _, what, ticked, _ in rows] == [
        ("left out: fat image", False),
        ("left out: in-phase image", False),
        ("left out: opposed-phase image", False),
        ("DCE: pre – post 4", True),
    ]
    assert all(grey for *_, grey in rows)
    assert import_it(program, "philips_mdixon") == [0, 90, 180, 270, 360]
    assert_files(program, "philips_mdixon", phases, (0, 90, 180, 270, 360))


def test_an_ultrafast_series_like_the_standard_one_is_asked_about_and_a_tick_decides(
    program, dropped
):
    phases = dropped(studies.ultrafast_and_standard)
    assert [ticked for _, _, ticked, _ in table(program)] == [True, True, True]
    assert "are less than 20 s apart" in program.widget("import_problem")["text"]
    assert not program.widget("import_start")["enabled"]
    click_tick(program, 1)
    assert [what for _, what, _, _ in table(program)] == [
        "DCE: pre",
        "left out: not chosen",
        "DCE: post 1 – post 4",
    ]
    times = import_it(program, "ultrafast_and_standard")
    assert times == [0, 90, 180, 270, 360]
    assert_files(program, "ultrafast_and_standard", phases, times)


@pytest.mark.night
def test_a_repeated_pre_is_left_out_or_kept_by_a_tick_and_averaged_on_the_page_kinetics(
    program, dropped, picture_folder
):
    phases = dropped(studies.repeated_pre)
    rows = table(program)
    assert [ticked for _, _, ticked, _ in rows] == [False, True]
    assert rows[0][1].startswith("left out: earlier pre-contrast (no contrast before phase 2")
    click_tick(program, 0)
    assert [what for _, what, _, _ in table(program)] == ["DCE: pre 1 – post 4"]
    assert import_it(program, "repeated_pre") == [0, 120, 210, 300, 390, 480]
    earlier = studies.noisy(phases[0], 3)
    assert_files(program, "repeated_pre", [earlier, *phases], (0, 120, 210, 300, 390, 480))
    inside(program, "panel.show_page('Kinetics')")
    wait_until(lambda: program.widgets(name="kinetics_pre"), "the choice of the pre")
    before = program.widget("kinetics_phases")["text"]
    assert "early post 2" in before  # 90 s after the first with contrast, and half a resolution
    inside(program, "panel.kinetics_page.times.pre.setCurrentIndex(1)")
    wait_until(
        lambda: "mean of the phases before contrast" in program.widget("kinetics_phases")["text"],
        "it",
    )
    mean = inside(program, "result = float(panel.kinetics.case.case.signal[0].mean())")
    assert mean == pytest.approx((earlier.mean() + phases[0].mean()) / 2, rel=1e-3)
    program.window_picture(picture_folder / "kinetics_repeated_pre.png")


def press(program, name):
    """Scroll to a control of the page, click it with the mouse, and wait for the answer."""
    inside(
        program,
        f"""
from qtpy.QtWidgets import QWidget
panel.import_page.area.ensureWidgetVisible(study.findChild(QWidget, {name!r}))
result = None
""",
    )
    judged_again(program, lambda: program.click(name))


@pytest.mark.night
def test_a_failed_phase_is_left_out_by_one_click_beside_the_refusal(
    program, dropped, picture_folder
):
    phases = dropped(studies.failed_last_phase)
    assert "differ too much" in program.widget("import_problem")["text"]
    assert program.widget("import_remedy_0")["text"] == "Leave out phase 5 of series 5"
    press(program, "import_remedy_0")
    assert [what for _, what, _, _ in table(program)] == [
        "DCE: pre – post 4",
        "left out: not chosen",
    ]
    program.window_picture(picture_folder / "import_failed_phase_left_out.png")
    assert import_it(program, "failed_last_phase") == list(studies.TIMES_S)
    assert_files(program, "failed_last_phase", phases, studies.TIMES_S)


@pytest.mark.night
def test_two_breasts_become_two_cases_by_one_click(program, dropped):
    halves = dropped(studies.two_sagittal_breasts)
    press(program, "import_part")
    assert program.widget("import_start")["text"] == "Import 2 cases"
    assert import_it(program, "two_sagittal_breasts_left") == list(studies.TIMES_S)
    for half, side in zip(halves, ("right", "left"), strict=True):
        assert_files(program, f"two_sagittal_breasts_{side}", half, studies.TIMES_S)


@pytest.mark.night
def test_a_seg_of_ucsf_dropped_on_the_page_shows_ours_beside_theirs(
    program, small_data_set, tmp_path, picture_folder
):
    pe, _, _ = make_seg(small_data_set, tmp_path / "VOI_PE_thresh70.dcm")
    assert program.ask("drop", name="CanvasBackendDesktop", paths=[str(small_data_set)])
    program.wait_for_text("3 cases")
    x, y, width, _ = program.wait_rect("cases_table")
    program.screen.click(x + width // 3, y + 34, times=2)
    ready = "result = panel.session.case_id == 'A_1' and panel.kinetics.case.case is not None"
    wait_until(lambda: inside(program, ready), "A_1 open")
    inside(program, "panel.show_page('Kinetics')")
    program.widget("kinetics_ftv_seg_part")
    seg = [str(tmp_path / "VOI_PE_thresh70.dcm")]
    assert program.ask("drop", name="kinetics_ftv_seg_part", paths=seg)
    numbers = program.widget("kinetics_ftv_seg_numbers")["text"]
    assert numbers.count(f";{pe}</td>") >= 2
    assert "ucsf-ispy1" in program.widget("kinetics_ftv_seg_basis")["text"]
    wait_until(  # the page scrolls to the answer once that is laid out
        lambda: (program.widget("kinetics_ftv_seg_basis")["visible_rect"] or (0,) * 4)[3] > 20,
        "the answer in sight",
    )
    program.window_picture(picture_folder / "kinetics_seg.png")


@pytest.mark.night
def test_the_window_closes_with_exit_code_0_and_nothing_is_left_half(program):
    program.screen.key("ctrl+q")
    program.wait_for_text("Do you want to close")
    program.screen.key("ctrl+q")
    assert program.process.wait(60) == 0, program.output
    assert "Traceback" not in program.output
    remembered = json.loads((program.folder / "config" / "preferences.json").read_text())
    assert remembered["recent"][1] == str(program.folder / "mamamia-cases")
    left = [path for path in program.folder.rglob("*") if path.name.startswith((".tmp", "tmp"))]
    assert left == []
