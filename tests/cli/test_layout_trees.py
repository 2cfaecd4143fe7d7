"""The 21 trees of public layouts by `mamamia cases --json` and by the library, a process each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

TREES = [
    "ambl",
    "bids",
    "bids_4d",
    "breastdcedl",
    "breastdcedl_spy1",
    "breastdm",
    "breastmrisegmentator",
    "duke_nifti",
    "fastmri_breast",
    "grand_challenge",
    "idc",
    "longitudinal_mama_mia",
    "mama_mia",
    "mama_synth",
    "mama_synth_2d",
    "monai",
    "nnunet",
    "odelia",
    "p0_pn",
    "slicer",
    "tcia_nbia",
]

SCRIPT = """
import json, sys
import numpy as np
import napari_mamamia as mm

data_set = mm.open_data_set(sys.argv[1])
exams = []
for case in data_set:
    masks = {mask.name: mask.path for mask in case.files.masks}
    exams.append({
        "patient": case.files.patient, "side": case.files.side or None,
        "visit": case.files.visit and case.files.visit.name,
        "n_phases": case.n_phases, "problems": list(case.problems), "shape": case.signal.shape,
        "voxels": int(np.asarray(case.reference).sum()) if case.files.reference else None,
    })
print(json.dumps(exams))
"""


def name_path(path: str) -> str:
    """The part of a path below a scene's archive, else the path."""
    return path.rpartition("!")[2]


def key_of(exam) -> tuple[str, str | None, str | None]:
    return exam["patient"], exam["visit"], exam["side"]


@pytest.fixture
def expected(real_data, request):
    folder = real_data("layouts")
    content = json.loads((folder / "expected.json").read_text())
    assert set(TREES) == set(content)
    return folder / request.param, content[request.param]


@pytest.mark.parametrize("expected", TREES, indirect=True)
def test_the_command_lists_each_exam_as_expected(expected, tmp_path):
    folder, tree = expected
    command = [str(Path(sys.executable).with_name("mamamia")), "cases", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["patients"] == sorted(tree["patients"])
    exams = {key_of(exam): exam for exam in content["exams"]}
    assert sorted(map(str, exams)) == sorted(str(key_of(exam)) for exam in tree["exams"])
    for wanted in tree["exams"]:
        exam = exams[key_of(wanted)]
        assert len(exam["phases"]) == len(wanted["phases"])
        for path, wanted_path in zip(exam["phases"], wanted["phases"], strict=True):
            assert path.endswith(name_path(wanted_path))
        assert exam["visit_index"] == wanted.get("visit_index", exam["visit_index"])
        assert exam["times_s"] == (wanted["times_s"] and pytest.approx(wanted["times_s"]))
        for name, mask in wanted["masks"].items():
            assert exam["masks"][name]["voxels"] == mask["voxels"]
            assert name_path(mask["path"]) in exam["masks"][name]["path"]
        assert len(exam["masks"]) == len(wanted["masks"])
    for pattern in tree.get("refuse", ()):
        assert any(path.startswith(pattern.rstrip("*")) for path in content["refused"])


@pytest.mark.parametrize("expected", TREES, indirect=True)
def test_the_library_reads_each_exam_as_expected(expected, tmp_path):
    folder, tree = expected
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    exams = {key_of(exam): exam for exam in json.loads(done.stdout)}
    assert len(exams) == tree["n_exams"]
    for wanted in tree["exams"]:
        exam = exams[key_of(wanted)]
        assert not exam["problems"]
        assert exam["n_phases"] == len(wanted["phases"]) == exam["shape"][0]
        voxels = [mask["voxels"] for mask in wanted["masks"].values()]
        assert exam["voxels"] is None or exam["voxels"] in voxels
