"""Real breast exams through each step of the hanging, on the usual screens; pictures are kept.

ISPY1_1002 lies in the shared data; others are fetched (`docs/real_exams.md`): Breast_MRI_153 is
found through `MAMAMIA_REAL_EXAM`, UCSF-BR-06 and -08 in the folder that `MAMAMIA_REAL_UCSF` names.
"""

import os
import subprocess
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from program import count_colour, wait_until

pytestmark = [
    pytest.mark.door,
    pytest.mark.real,
    pytest.mark.night,
    pytest.mark.timeout(1800),
]
PREDICTION = "#E69F00"
SIZES = ((1280, 720), (1400, 900), (1920, 1080))
LEAST_VIEW = (300, 200)
"""Points of width and height below which a view of a breast is cramped, by looking."""
DOCK = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
panel = dock_of(napari.current_viewer())
"""
OPEN = (
    DOCK
    + """
case = panel and panel.session.case
result = bool(case and case.is_loaded) and case.case_id
"""
)
STEP = DOCK + "result = panel.hanging.step and str(panel.hanging.step)"
STEPS = DOCK + "result = [str(step) for step in panel.hanging.plan().steps]"
IDLE = DOCK + "result = panel.jobs.wait(0) and not panel.planes.is_building"
VIEWS = (
    DOCK
    + """
from qtpy.QtCore import QPoint
result = []
for model in panel.planes.views():
    canvas = panel.planes.canvas(model)
    corner = canvas.mapToGlobal(QPoint(0, 0))
    letters = {edge: model.canvas.overlays["mamamia_" + edge].text
               for edge in ("top", "bottom", "left", "right")}
    place = [corner.x(), corner.y(), canvas.width(), canvas.height()]
    result.append([place, letters])
"""
)


@pytest.fixture(scope="module")
def exams(scripts, tmp_path_factory, real_data):
    """The exams that are there, imported and predicted; the window is started on them."""
    folder = tmp_path_factory.mktemp("exams")
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        archive.extractall(folder)
    found = {"ISPY1_1002": folder / "ISPY1_1002"}
    duke, ucsf = (os.environ.get(f"MAMAMIA_REAL_{name}", "") for name in ("EXAM", "UCSF"))
    if duke:
        found["DUKE_153"] = Path(duke)
    for number in ("06", "08") if ucsf else ():
        found[f"UCSF_{number}"] = Path(ucsf) / f"UCSF-BR-{number}" / "image_dce_3dfgre_orig"
    data_set = folder / "cases"
    mamamia = scripts / "mamamia"
    for case_id, dicom in found.items():
        command = [mamamia, "import", dicom, "--out", data_set, "--case", case_id]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    out = data_set.with_name("cases-workspace") / "predictions" / "kinetic"
    subprocess.run([mamamia, "predict", data_set, "--out", out], check=True, timeout=900)
    return data_set, sorted(found), out


def breast_of(mask_path):
    """Return "R" or "L", the side of the scanner's middle on which the mask's centre lies.

    Read with nibabel alone, whose x runs to the patient's right.
    """
    image = nib.load(mask_path)
    voxels = np.argwhere(np.asarray(image.dataobj) > 0).mean(axis=0)
    return "R" if nib.affines.apply_affine(image.affine, voxels)[0] > 0 else "L"


def wait_idle(program):
    for _ in range(2):  # the second look finds what the first one's end began
        wait_until(lambda: program.ask("evaluate", code=IDLE), "the views", 300)
        program.screen.xdotool("sleep", 0.5)


def look_at(program, where, breast):
    """Return what is wrong with the views of a step, as a reader would see it."""
    found, n_mask = [], 0
    screen = program.screen.picture()
    for (x, y, width, height), letters in program.ask("evaluate", code=VIEWS):
        view = screen[y : y + height, x : x + width]
        if width < LEAST_VIEW[0] or height < LEAST_VIEW[1] or view.shape[:2] != (height, width):
            found.append(f"{where}: a view of {width} x {height}, on the screen {view.shape}")
        if (view.max(axis=2) > 40).mean() < 0.04:
            found.append(f"{where}: a view with nothing in it")
        pair = {letters["left"], letters["right"]}
        if pair not in ({"R", "L"}, {"A", "P"}):
            found.append(f"{where}: letters {letters}")
        orange = count_colour(view, PREDICTION, 40)
        n_mask += orange
        whole = where.split()[-1] in ("mip", "both", "late")
        if orange > 10 and whole and pair == {"R", "L"}:
            rgb = np.array([int(PREDICTION[k : k + 2], 16) for k in (1, 3, 5)])
            columns = np.nonzero((np.abs(view.astype(int) - rgb) <= 40).all(axis=2))[1]
            side = letters["left"] if np.median(columns) < width / 2 else letters["right"]
            if side != breast:
                found.append(f"{where}: the mask of the {breast} breast lies at the letter {side}")
    return found if n_mask else [*found, f"{where}: no pixel of the mask"]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_real_exams_hang_right_in_each_step(start, exams, size, picture_folder):
    data_set, cases, predictions = exams
    found = []
    program = start(
        *("mamamia", "view", data_set, "--case", cases[0]),
        size=size,
        MAMAMIA_CONFIG_DIR=str(data_set.parent / f"config{size[0]}"),
    )
    for number, case in enumerate(cases):
        if number:
            program.screen.key("n")
        wait_until(lambda case=case: program.ask("evaluate", code=OPEN) == case, case, 300)
        wait_idle(program)  # a key that jumps to the lesion needs its mask
        x, y, width, height = program.canvas()
        program.screen.xdotool("mousemove", x + width // 2, y + height // 2)
        program.screen.key("g")
        breast = breast_of(predictions / f"{case}.nii.gz")
        steps = program.ask("evaluate", code=STEPS)
        assert steps[0] == "mip"
        for step in steps:
            if program.ask("evaluate", code=STEP) != step:
                program.screen.key("Next")
            wait_until(lambda s=step: program.ask("evaluate", code=STEP) == s, f"step {step}")
            wait_idle(program)
            name = f"hanging_{case}_{size[0]}_{step}.png"
            program.screen.picture(picture_folder / name)
            found += look_at(program, f"{case} {step}", breast)
    assert found == []
