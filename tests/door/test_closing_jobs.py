"""The window is closed by its cross, key or menu while a job runs: all ends, nothing is half there.

What was finished stays, no process is left, nothing is printed, and the exit code is 0.
"""

import subprocess

import nibabel as nib
import numpy as np
import pytest
from program import close_by_cross, close_by_keys, close_by_menu, wait_until

import dicom_phantoms as phantoms

pytestmark = [pytest.mark.door, pytest.mark.night]


def read_all(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def predict_all(program, _study):
    program.click("cases_predict_all")


def export_all(program, _study):
    program.click("cases_predict_all")
    wait_until(lambda: program.widgets(name="cases_note"), "the list")
    wait_until(lambda: not program.widgets(name="header_progress"), "the predictions")
    program.click("cases_export_all")
    program.click("export_start")


def import_study(program, study):
    assert program.ask("drop", name="mamamia_dock", paths=[str(study)])
    program.click("import_start")


@pytest.mark.parametrize("close", [close_by_cross, close_by_keys, close_by_menu])
@pytest.mark.parametrize("begin", [predict_all, export_all, import_study])
def test_a_job_at_work_ends_with_the_window(start, small_data_set, tmp_path, begin, close):
    before = read_all(small_data_set)
    study = tmp_path / "study"
    study.mkdir()
    for phase in range(3):
        phantoms.write_phase(study, phase, shape=(40, 128, 128), AcquisitionTime=f"10{phase:02d}00")
    program = start("mamamia", "view", small_data_set)
    program.wait_for_text("3 case(s)")
    if close is close_by_menu:
        program.click("header_napari")
    begin(program, study)
    assert close(program) == 0, program.output
    assert program.output == ""
    rows = subprocess.run(["ps", "-eo", "sess,args"], capture_output=True, text=True, check=True)
    left = [row for row in rows.stdout.splitlines() if row.split()[0] == str(program.process.pid)]
    assert not left
    after = read_all(small_data_set)
    table = small_data_set / "clinical_and_imaging_info.xlsx"
    imported = before.pop(table) != after[table]
    assert before.items() <= after.items(), "the data set has what it had"
    # an import that was so far gone is whole, one that was not left nothing
    phases = [path for path in after.keys() - before.keys() if path.parent.name == "study"]
    assert len(phases) == (3 if imported else 0)
    for path in tmp_path.rglob("*.nii.gz"):
        assert np.asarray(nib.load(path).dataobj).size, path
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".tmp", ".part")]
