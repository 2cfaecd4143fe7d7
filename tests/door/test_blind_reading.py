"""`mamamia view --blind` and `--protocol` in a process of their own: pixels, files, exit codes."""

import json
import shutil
import subprocess

import pytest
from program import count_colour, wait_until

from napari_mamamia.io.workspace.workspace import Workspace

pytestmark = pytest.mark.door

REFERENCE, PREDICTION = "#56B4E9", "#E69F00"
PANEL = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
panel = dock_of(napari.current_viewer())
"""


@pytest.fixture
def data_set(small_data_set):
    """A data set with a reference and a model's mask."""
    workspace = Workspace(small_data_set.with_name(f"{small_data_set.name}-workspace"))
    mask = workspace.prediction("secretnet", "A_1")
    mask.parent.mkdir(parents=True)
    shutil.copy(small_data_set / "segmentations" / "expert" / "A_1.nii.gz", mask)
    return small_data_set


def is_read(program):
    code = f"{PANEL}result = panel is not None and panel.session.case is not None"
    code += " and panel.session.case.is_loaded and panel.jobs.wait(0)"
    return program.ask("evaluate", code=code)


def colours(program):
    picture = program.canvas_picture()
    return count_colour(picture, REFERENCE), count_colour(picture, PREDICTION)


def write_protocol(folder, blind):
    path = folder / "study.json"
    path.write_text(json.dumps({"name": "Study 1", "blind": blind}))
    return path


@pytest.mark.night  # by day test_ways_in sees the masks of a window that is not blind
def test_without_blind_both_masks_are_on_the_screen(start, data_set):
    program = start("mamamia", "view", data_set, "--case", "A_1")
    wait_until(lambda: is_read(program), "the case")
    wait_until(lambda: max(colours(program)) > 200, "a mask")


@pytest.mark.night  # by day the window of test_hostile_folder is started blind
@pytest.mark.parametrize("by", ["option", "protocol"])
def test_a_window_started_blind_shows_no_mask_and_says_so(start, data_set, tmp_path, by):
    words = ["--blind"] if by == "option" else ["--protocol", write_protocol(tmp_path, True)]
    program = start("mamamia", "view", data_set, "--case", "A_1", *words)
    program.wait_for_text("Blind: reference, model, other readers, numbers and clinical data are")
    wait_until(lambda: is_read(program), "the case")
    program.screen.key("space")
    assert colours(program) == (0, 0)
    layers = program.ask("evaluate", code=f"{PANEL}result = [x.name for x in panel.viewer.layers]")
    assert layers == ["A_1 phases"]


@pytest.mark.parametrize("blind", ["yes", ["refrence"], 1])
def test_a_protocol_that_cannot_be_read_opens_no_window(scripts, data_set, tmp_path, blind):
    """A typing error in it must not show what was to be hidden."""
    protocol = write_protocol(tmp_path, blind)
    program = subprocess.run(
        [scripts / "mamamia", "view", data_set, "--protocol", protocol],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert program.returncode != 0
    assert "'blind' of the protocol" in program.stderr
    assert "Traceback" not in program.stderr


def test_a_protocol_that_is_not_there_opens_no_window(scripts, data_set, tmp_path):
    program = subprocess.run(
        [scripts / "mamamia", "view", data_set, "--protocol", tmp_path / "none.json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert program.returncode == 2
    # The box around an error breaks a long path wherever it stands.
    assert "none.json" in "".join(c for c in program.stderr if c not in "│ \n")
