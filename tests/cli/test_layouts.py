"""`mamamia cases` and `mamamia layouts` on folders as data sets are published."""

import json
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("mamamia")), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def save(path, voxels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels, np.diag([1.0, 1, 2, 1])), path)


@pytest.fixture
def p0_pn(tmp_path):
    """Two cases of three phases in folders P0 to P2, one with a mask of 8 voxels."""
    root = tmp_path / "set"
    for case in ("GD_1", "GD_2"):
        for phase in range(3):
            save(
                root / f"data/GD/{case}/P{phase}.nii.gz",
                (np.arange(64).reshape(4, 4, 4) + 50 * phase).astype(np.int16),
            )
    mask = np.zeros((4, 4, 4), np.uint8)
    mask[1:3, 1:3, 1:3] = 1
    save(root / "data/GD_gt/GD_1.nii.gz", mask)
    return root


def test_cases_prints_phases_and_counts_voxels(p0_pn):
    found = run("cases", p0_pn, "--json")
    assert found.returncode == 0, found.stderr
    content = json.loads(found.stdout)
    assert content["layout"] == "p0-pn"
    first, second = content["exams"]
    assert first["phases"] == [f"data/GD/GD_1/P{k}.nii.gz" for k in range(3)]
    assert first["masks"]["gt"]["voxels"] == 8
    assert second["masks"] == {}


def test_missing_phase_ends_with_3_and_two_layouts_with_2(p0_pn):
    (p0_pn / "data/GD/GD_2/P1.nii.gz").unlink()
    missing = run("cases", p0_pn)
    assert missing.returncode == 3
    assert "phase 1 of GD_2 is missing" in " ".join(missing.stdout.split())
    for name in ("Pre", "Post_1"):
        save(p0_pn / f"UKA/data_unilateral/U_left/{name}.nii.gz", np.zeros((2, 2, 2), np.int16))
    both = run("cases", p0_pn)
    assert both.returncode == 2
    assert "--layout odelia" in both.stderr
    assert "--layout p0-pn" in both.stderr


def test_a_kept_layout_is_used_by_every_command(p0_pn, tmp_path):
    described = run("layouts", "--propose", p0_pn)
    own = tmp_path / "own.toml"
    own.write_text(described.stdout)
    kept = run("cases", p0_pn, "--layout", own, "--keep-layout")
    assert kept.returncode == 0, kept.stderr
    predicted = run("predict", p0_pn, "--out", tmp_path / "masks")
    assert predicted.returncode == 0, predicted.stderr
    assert sorted(path.name for path in (tmp_path / "masks").glob("*.nii.gz")) == [
        "GD_1.nii.gz",
        "GD_2.nii.gz",
    ]
    assert not list(p0_pn.rglob("*.toml"))


@pytest.fixture
def visits(tmp_path):
    """Two patients with two visits of two phases, in folders that no known layout describes."""
    root = tmp_path / "trial"
    for patient in ("PAT-1", "PAT-2"):
        for visit in ("T0", "T1"):
            for phase in range(2):
                voxels = (np.arange(64).reshape(4, 4, 4) + 50 * phase).astype(np.int16)
                save(root / patient / visit / f"dce_{phase}.nii.gz", voxels)
    return root


def test_an_unknown_layout_is_proposed_used_and_kept(visits):
    asked = run("cases", visits)
    assert asked.returncode == 2
    assert f"mamamia layouts --propose {visits}" in " ".join(asked.stderr.split())
    assert "--layout proposed" in asked.stderr
    kept = run("cases", visits, "--layout", "proposed", "--keep-layout", "--json")
    assert kept.returncode == 0, kept.stderr
    content = json.loads(kept.stdout)
    assert [(exam["patient"], exam["visit"], exam["visit_index"]) for exam in content["exams"]] == [
        ("PAT-1", "T0", 0),
        ("PAT-1", "T1", 1),
        ("PAT-2", "T0", 0),
        ("PAT-2", "T1", 1),
    ]
    assert run("cases", visits).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--patient", "pat-1"), 0, ["PAT-1_T0", "PAT-1_T1"]),
        (("--visit", "T1"), 0, ["PAT-1_T1", "PAT-2_T1"]),
        (("--patient", "PAT-2", "--visit", "T0"), 0, ["PAT-2_T0"]),
        (("--patient", "PAT-3"), 1, []),
        (("--visit", "T7"), 1, []),
    ],
)
def test_patients_and_visits_are_chosen_by_name(visits, words, code, expected):
    found = run("cases", visits, "--layout", "proposed", "--json", *words)
    assert found.returncode == code, found.stderr
    exams = json.loads(found.stdout)["exams"] if code == 0 else []
    assert [exam["case_id"] for exam in exams] == expected


def test_names_cannot_steer_the_terminal(p0_pn):
    (p0_pn / "data/GD/GD_1").rename(p0_pn / "data/GD/GD\x1b[2J_1")
    save(p0_pn / "data/GD/\x1b[31mred.nii.gz", np.zeros((2, 2, 2), np.int16))
    for words in ((), ("--csv",)):
        found = run("cases", p0_pn, *words)
        assert "\x1b" not in found.stdout + found.stderr
    (p0_pn / "empty\x1b[2J").mkdir()
    assert "\x1b" not in run("cases", p0_pn / "empty\x1b[2J").stderr


def test_visits_are_sessions_in_bids(visits, tmp_path):
    chosen = ("--layout", "proposed", "--patient", "PAT-1")
    predicted = run("predict", visits, *chosen, "--out", tmp_path / "masks")
    assert predicted.returncode == 0, predicted.stderr
    words = ("--masks", tmp_path / "masks", "--format", "bids", "--out", tmp_path / "out")
    exported = run("export", visits, *chosen, *words)
    assert exported.returncode == 0, exported.stderr
    root = tmp_path / "out/bids"
    names = [path.relative_to(root).as_posix() for path in root.rglob("*.nii.gz")]
    assert sorted(names) == [
        f"sub-PAT1/ses-{visit}/anat/sub-PAT1_ses-{visit}_space-orig_desc-masks_dseg.nii.gz"
        for visit in ("T0", "T1")
    ]


def test_visits_stay_visits_in_a_mama_mia_export(visits, tmp_path):
    """Two visits of a patient are two ids, one patient and two masks when opened again."""
    chosen = ("--layout", "proposed")
    assert run("predict", visits, *chosen, "--out", tmp_path / "masks").returncode == 0
    for number, path in enumerate(sorted((tmp_path / "masks").glob("*.nii.gz"))):
        voxels = np.zeros((4, 4, 4), np.uint8)
        voxels.ravel()[: number + 1] = 1
        save(path, voxels)
    words = ("--masks", tmp_path / "masks", "--out", tmp_path / "out", "--with-images")
    exported = run("export", visits, *chosen, *words, "--harmonise", "las-psr")
    assert exported.returncode == 0, exported.stderr
    assert run("verify", tmp_path / "out").returncode == 0
    root = tmp_path / "out/harmonised"
    (root / "segmentations/masks").rename(root / "segmentations/expert")
    opened = run("cases", root, "--json")
    assert opened.returncode == 0, opened.stderr
    content = json.loads(opened.stdout)
    assert content["layout"] == "MAMA-MIA"
    assert content["patients"] == ["PAT-1", "PAT-2"]
    assert [
        (exam["case_id"], exam["patient"], exam["visit"], exam["visit_index"], exam["phases"][0])
        for exam in content["exams"]
    ] == [
        (case, case[:5], case[6:], int(case[7]), f"images/{case}/{case}_0000.nii.gz")
        for case in ("PAT-1_T0", "PAT-1_T1", "PAT-2_T0", "PAT-2_T1")
    ]
    voxels = [exam["masks"]["expert"]["voxels"] for exam in content["exams"]]
    assert voxels == [1, 2, 3, 4]
    (root / "exams.csv").unlink()
    content = json.loads(run("cases", root, "--json").stdout)
    assert content["patients"] == ["PAT-1_T0", "PAT-1_T1", "PAT-2_T0", "PAT-2_T1"]
    assert content["warnings"] == []
