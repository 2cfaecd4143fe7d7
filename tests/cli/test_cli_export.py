"""`mamamia export` and `mamamia verify`: options, what is printed, exit codes."""

import json

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.errors import CaseError, MamamiaError


@pytest.fixture
def mamamia(small_data_set):
    """Return a function that runs a command in this process; `export` gets the data set."""

    def run(command, *arguments):
        first = (command, small_data_set) if command == "export" else (command,)
        done = CliRunner().invoke(app, [str(a) for a in (*first, *arguments)])
        if isinstance(done.exception, MamamiaError):
            raise done.exception
        return done

    return run


@pytest.fixture
def expert(small_data_set):
    return small_data_set / "segmentations" / "expert"


def test_export_and_verify_end_to_end(mamamia, expert, tmp_path):
    out = tmp_path / "bundle"
    formats = [word for name in ("nifti", "challenge", "nnunet") for word in ("--format", name)]
    done = mamamia(
        "export", "--masks", expert, "--out", out, "--harmonise", "ras", *formats, "--with-images"
    )
    assert done.exit_code == 0, done.output
    assert "3 masks saved and verified" in done.stdout
    assert "Quality: 3 green, 0 amber, 0 red" in done.stdout
    assert (out / "harmonised/images/B_1/B_1_0003.nii.gz").exists()
    assert (out / "challenge/submission.zip").exists()
    assert (out / "nnunet/Dataset501_mydataset/dataset.json").exists()
    sound = mamamia("verify", out)
    assert sound.exit_code == 0
    assert "all match the manifest" in sound.stdout
    (out / "A_1.json").write_text("{}")
    damaged = mamamia("verify", out)
    assert damaged.exit_code == 3
    assert "wrong: A_1.json: the file has changed" in damaged.stdout


def test_readers_get_their_names_on_the_command_line(mamamia, expert, tmp_path):
    out = tmp_path / "bundle"
    done = mamamia(
        "export", "--masks", f"Ana={expert}", "--masks", f"Ben={expert}", "--fuse", "majority",
        "--case", "A_1", "--out", out, "--no-quality",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (out / "masks").iterdir()) == ["Ana", "Ben", "majority"]
    assert json.loads((out / "manifest.json").read_text())["masks"] == ["Ana", "Ben", "majority"]
    assert not (out / "quality.csv").exists()


def test_a_case_that_cannot_be_exported_exits_with_3(mamamia, expert, tmp_path):
    (expert / "A_2.nii.gz").write_bytes(b"broken")
    done = mamamia("export", "--masks", expert, "--out", tmp_path / "out", "--no-quality")
    assert done.exit_code == 3
    assert "failed: A_2:" in done.output


def test_names_that_collide_are_an_error_of_ours(mamamia, expert, tmp_path):
    with pytest.raises(CaseError, match="rename one set"):
        mamamia("export", "--masks", expert, "--masks", expert, "--out", tmp_path / "out")
    with pytest.raises(CaseError, match="expected NAME=PATH"):
        mamamia("export", "--masks", "=", "--out", tmp_path / "out")


def test_without_a_dicom_source_it_is_said_that_nobody_searched_for_the_patient(
    mamamia, small_data_set, expert, tmp_path
):
    beside = small_data_set / "images/A_1/A_1_0000.json"
    beside.write_text(json.dumps({"PatientName": "Xavierson^Zoe", "PatientID": "A_1"}))
    out = tmp_path / "bundle"
    done = mamamia("export", "--masks", expert, "--out", out, "--no-quality")
    assert done.exit_code == 0, done.output
    assert "NOT searched for the patient's name" in done.stdout
    assert "searched for 1 text from the volumes' headers and JSON files: none found" in done.stdout
    assert "the case id is also the PatientID in a JSON file" in done.stdout
    assert "NOT searched" in " ".join(json.loads((out / "manifest.json").read_text())["notes"])
    assert "NOT searched" in mamamia("verify", out).stdout

    (out / "A_1.json").write_text((out / "A_1.json").read_text() + " " * 9 + "zoe xavierson")
    found = mamamia("verify", out, "--images", small_data_set)
    assert found.exit_code == 3
    assert "A_1.json: the file contains the source's PatientName" in found.stdout


def write_case(root, case_id, labels=(1,)):
    for folder, name, value in (
        (f"images/{case_id}", f"{case_id}_0000", 300),
        (f"images/{case_id}", f"{case_id}_0001", 400),
        ("segmentations/expert", case_id, 0),
    ):
        voxels = np.full((12, 12, 6), value, np.int16)
        for number, label in enumerate(labels if value == 0 else ()):
            voxels[3 + number : 8, 3:8, 2:4] = label
        (root / folder).mkdir(parents=True, exist_ok=True)
        nib.save(nib.Nifti1Image(voxels, np.eye(4)), root / folder / f"{name}.nii.gz")


def export_of(root, *arguments):
    words = ("export", root, "--masks", root / "segmentations/expert", *arguments)
    return CliRunner().invoke(app, [str(word) for word in words])


def test_masks_whose_names_differ_in_letter_case_alone_are_refused(tmp_path):
    """They would be one case: the mask of one was exported as that of the other."""
    write_case(tmp_path / "set", "A1")
    write_case(tmp_path / "set", "a1")
    refusal = export_of(tmp_path / "set", "--out", tmp_path / "out").exception
    assert "several masks (ignoring letter case): A1.nii.gz and a1.nii.gz" in str(refusal)


def test_cases_of_one_bids_name_are_refused_by_their_own_names(tmp_path):
    for case_id in ("A-1", "A_1"):
        write_case(tmp_path / "set", case_id)
    done = export_of(tmp_path / "set", "--out", tmp_path / "out", "--format", "bids")
    assert "the masks A-1 of expert and A_1 of expert would both be" in str(done.exception)


def test_labels_that_the_challenge_does_not_know_are_told(tmp_path):
    write_case(tmp_path / "set", "A_1", labels=(1, 2))
    rules = [{"source": value, "target": value, "name": str(value)} for value in (1, 2)]
    (tmp_path / "rules.json").write_text(json.dumps({"rules": rules}))
    done = export_of(
        tmp_path / "set", "--out", tmp_path / "out", "--format", "challenge",
        "--label-map", tmp_path / "rules.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    # of 5 x 5 x 2 voxels those from row 4 on, 4 x 5 x 2, have label 2
    assert "contains only label 1, so 40 voxels with other labels in expert" in done.stdout


def test_no_case_id_is_run_as_a_formula_by_who_opens_the_quality_table(tmp_path):
    write_case(tmp_path / "set", "=cmd")
    export_of(tmp_path / "set", "--out", tmp_path / "out")
    assert "\n'=cmd," in (tmp_path / "out/quality.csv").read_text()
