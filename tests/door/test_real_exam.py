"""The whole way on real breast exams: dropped, predicted, corrected, exported, opened again.

Two exams, as `shared/data/README.md` names them: the one that lies there (ISPY1_1002, GE, sagittal,
one breast), and one that a script fetches (Breast_MRI_153,
Siemens, axial, both breasts), found through `MAMAMIA_REAL_EXAM`. Nothing of them is kept.
"""

import json
import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from program import count_colour, wait_until

pytestmark = [pytest.mark.door, pytest.mark.real, pytest.mark.night, pytest.mark.timeout(1500)]

PREDICTION, REFINED = "#E69F00", "#009E73"
SLOW_S = 400.0


def unpacked_exam(find, folder):
    with zipfile.ZipFile(find("ispy1_1002.zip")) as archive:
        archive.extractall(folder)
    return folder / "ISPY1_1002"


def fetched_exam(_find, _folder):
    named = os.environ.get("MAMAMIA_REAL_EXAM", "")
    if not Path(named).is_dir() or not named:
        pytest.skip("the fetched exam is absent: set MAMAMIA_REAL_EXAM to its DICOM folder")
    return Path(named)


EXAMS = {
    "Siemens, axial, both breasts": (fetched_exam, 5, (160, 448, 448)),
    "GE, sagittal, one breast": (unpacked_exam, 3, (60, 256, 256)),
}


def text_of(program, name):
    rows = program.widgets(name=name)
    return rows[0]["text"] if rows else ""


def green_lesion(program):
    """Return where on the screen the outline of the refined mask lies: middle and half its size."""
    x, y, _, height = program.canvas()
    rgb = np.array([int(REFINED[k : k + 2], 16) for k in (1, 3, 5)])
    picture = program.canvas_picture().astype(int)
    hit = (np.abs(picture - rgb) <= 24).all(axis=2)
    hit[: height // 5] = False  # the line that says what is armed has the same colour
    rows, columns = np.nonzero(hit)
    if rows.size < 10:
        return None
    middle = int(np.median(columns)) + x, int(np.median(rows)) + y
    return middle, max(int(np.ptp(columns)) // 2, 3)


def lesion_is_centred(program):
    found = green_lesion(program)
    x, y, width, height = program.canvas()
    if found is None:
        return False
    (column, row), _ = found
    return abs(column - x - width / 2) < width / 6 and abs(row - y - height / 2) < height / 6


def tick(program, name):
    """Click a box and wait until it is ticked."""
    program.click(name)
    wait_until(lambda: program.widget(name)["checked"], f"{name} ticked", 30)


@pytest.mark.parametrize("name", EXAMS)
def test_a_real_exam_from_its_dicom_folder_to_the_next_start(
    start, scripts, real_data, tmp_path, name, picture_folder
):
    find, n_phases, shape = EXAMS[name]
    exam, short = find(real_data, tmp_path / "dicom"), name.split(",")[0].lower()
    program = start("napari", "-w", "napari-mamamia", "Cases")
    program.widget("cases_import")
    assert program.ask("drop", name="CanvasBackendDesktop", paths=[str(exam)])
    program.widget("import_start")
    wait_until(lambda: program.widget("import_start")["enabled"], "the exam is understood")
    program.screen.picture(picture_folder / f"real_{short}_1_dropped.png")
    program.click("import_start")
    data_set = program.folder / "mamamia-cases"
    # named after the exam's folder, or neutrally where that would tell who it is (test_privacy)
    wait_until(
        lambda: text_of(program, "header_case") in (exam.name, "CASE_001"), "it opens", SLOW_S
    )
    case_id = text_of(program, "header_case")
    wait_until(lambda: not text_of(program, "header_progress_text"), "all phases read", SLOW_S)
    assert len(list((data_set / "images" / case_id).glob("*.nii.gz"))) == n_phases

    program.turn_to("Predict")
    program.click("predict_start")
    wait_until(lambda: "saved" in text_of(program, "predict_result"), "the prediction", SLOW_S)
    wait_until(lambda: count_colour(program.canvas_picture(), PREDICTION) > 10, "its outline")
    program.screen.picture(picture_folder / f"real_{short}_2_predicted.png")

    program.turn_to("Refine")
    program.click("refine_from_prediction")
    program.click("header_reader_name")
    program.screen.xdotool("type", "Ana")
    program.click("header_reader_ok")
    wait_until(lambda: text_of(program, "refine_volume_mm3_now"), "the reader's own mask", SLOW_S)
    before = text_of(program, "refine_volume_mm3_now")
    x, y, width, height = program.canvas()
    program.screen.xdotool("mousemove", x + width // 2, y + height // 2)
    program.screen.key("g")  # the lesion in the middle of the picture
    program.screen.key("q")
    wait_until(lambda: lesion_is_centred(program), "the lesion in the middle")
    (column, row), reach = green_lesion(program)
    program.screen.drag([(column + reach, row), (column + reach + 4, row + 3)])
    wait_until(
        lambda: text_of(program, "refine_volume_mm3_now") not in ("", before), "a stroke", SLOW_S
    )
    program.screen.picture(picture_folder / f"real_{short}_3_refined.png")
    wait_until(lambda: text_of(program, "header_saved").startswith("saved"), "saving", SLOW_S)

    program.turn_to("Kinetics")
    wait_until(lambda: "cc" in text_of(program, "kinetics_ftv"), "the tumour volume", SLOW_S)
    program.screen.picture(picture_folder / f"real_{short}_4_kinetics.png")
    program.turn_to("Export")
    tick(program, "export_format_dicom_seg")
    program.click("export_start")
    wait_until(lambda: "verified" in text_of(program, "export_result"), "the bundle", SLOW_S)
    program.end()

    workspace = data_set.with_name("mamamia-cases-workspace")
    refined, predicted = workspace / "refined" / "Ana", workspace / "predictions" / "kinetic"
    environment = {**os.environ, "HOME": str(program.folder)}

    def mamamia(*words):
        return subprocess.run(
            [scripts / "mamamia", *words],
            capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
        )  # fmt: skip

    scored = mamamia(
        "score", "--reference", refined, "--prediction", predicted, "--out", tmp_path / "scores"
    )
    assert scored.returncode == 0, scored.stdout + scored.stderr
    summary = json.loads((tmp_path / "scores" / "summary.json").read_text())
    assert "dsc" in json.dumps(summary).lower()
    bundle = next((workspace / "exports").iterdir())
    assert mamamia("verify", bundle).returncode == 0
    assert list(bundle.rglob(f"{case_id}.dcm"))

    again = start(
        "mamamia", "view", data_set, "--case", case_id,
        HOME=str(program.folder), MAMAMIA_CONFIG_DIR=str(program.folder / "config"),
    )  # fmt: skip
    wait_until(lambda: count_colour(again.canvas_picture(), REFINED) > 10, "the reader's mask", 300)
    again.screen.picture(picture_folder / f"real_{short}_5_next_start.png")
    import nibabel as nib

    image = nib.load(refined / f"{case_id}.nii.gz")
    assert image.shape[::-1] == shape or sorted(image.shape) == sorted(shape)
