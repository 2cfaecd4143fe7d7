"""What is told of a submission before it runs, and how the challenge's contract is kept."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import ModelError
from napari_mamamia.features.challenge.io.handed_in import challenge_facts
from napari_mamamia.segmentation.sandbox.external import read_submission
from napari_mamamia.segmentation.sandbox.sandbox import Ending, RunLimits

sys.path.insert(0, str(Path(__file__).parent))
import foreign
from foreign import OPEN

DEMO = Path(__file__).parent / "demo_submission"


def test_a_submission_is_described_without_running_it(tmp_path):
    folder = tmp_path / "team"
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "net.pth").write_bytes(b"weights")
    with (folder / "model.py").open("a") as file:
        file.write("\nraise SystemExit('executed')\n")
    found = read_submission(folder)
    lines = "".join(
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(path.name for path in folder.iterdir())
    )
    assert found.sha256 == hashlib.sha256(lines.encode()).hexdigest()
    assert found.licence_line == "Demonstration only: own code of the tests, CC0."
    assert found.layouts == ("demo_code_submission", "team")
    assert found.names_room
    assert found.programs == ("net.pth",)
    assert (found.files, found.is_package) == (6, False)


@pytest.mark.parametrize(
    ("line", "layout"),
    [
        ('"/app/ingested_program/sample_code_submission/w.pth"', "sample_code_submission"),
        ("os.path.join('/app/ingested_program', 'code_7', 'w')", "code_7"),
        ('"/app/ingested_program/weights/w.pth"', None),
    ],
)
def test_both_layouts_are_told_by_the_paths_in_its_files(tmp_path, line, layout):
    folder = tmp_path / "team"
    (folder / "weights").mkdir(parents=True)
    (folder / "model.py").write_text(f"W = {line}\nclass Model:\n    pass\n")
    expected = {"team"} | ({layout} if layout else set())
    assert set(read_submission(folder).layouts) == expected


def test_a_folder_with_one_submission_in_it_is_that_submission(tmp_path):
    foreign.write_submission(tmp_path / "zip" / "one", "pass")
    assert read_submission(tmp_path / "zip").name == "one"
    foreign.write_submission(tmp_path / "zip" / "two", "pass")
    with pytest.raises(ModelError, match="one, two"):
        read_submission(tmp_path / "zip")


def test_what_is_no_submission_is_refused(tmp_path):
    with pytest.raises(ModelError, match="found none"):
        read_submission(tmp_path)
    (tmp_path / "model.py").write_text("class Net: pass\n")
    with pytest.raises(ModelError, match="class Model"):
        read_submission(tmp_path)
    (tmp_path / "s.zip").write_bytes(b"PK")
    with pytest.raises(ModelError, match="unpack"):
        read_submission(tmp_path / "s.zip")


def test_a_submission_learns_the_challenges_facts_and_not_the_response(tmp_path):
    box = {f"{axis}_{end}": 3 for axis in "xyz" for end in ("min", "max")}
    imaging = {"bilateral": True, "site": "S1", "acquisition_times": [0, 90]}
    path = tmp_path / "A_1.json"
    content = {
        "patient_id": "a_1",
        "clinical_data": {"age": 44},
        "primary_lesion": {"pcr": 1, "tumor_subtype": "luminal", "breast_coordinates": box},
        "imaging_data": imaging,
    }
    path.write_text(json.dumps(content))
    assert json.loads(challenge_facts(path, "A_1")) == {
        "patient_id": "A_1",
        "primary_lesion": {"breast_coordinates": box},
        "imaging_data": {"bilateral": True, "site": "S1"},
    }


BOTH = """

class Table:
    def to_csv(self, path, index):
        assert index is False
        path.write_text("patient_id,pcr,score\\nA_1,1,0.75\\n")


class Model:
    def __init__(self, dataset):
        self.dataset = dataset
        self.calls = []

    def predict_segmentation(self, output_dir):
        self.calls.append("segmentation")

    def predict_classification(self, output_dir):
        self.calls.append("classification")
        open(output_dir + "/calls.txt", "w").write(" ".join(self.calls))
        return Table()
"""

COMBINED = """
    def predict_segmentation_and_classification(self, output_dir):
        open(output_dir + "/calls.txt", "w").write("combined")
        return output_dir, Table()
"""


def contract(tmp_path, text, task):
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "model.py").write_text(text)
    run = foreign.job_of(tmp_path, folder, OPEN, task=task)
    calls = tmp_path / "work" / "output" / "calls.txt"
    return run, calls.read_text() if calls.exists() else ""


def test_segmentation_comes_first_and_the_runner_writes_the_returned_table(tmp_path):
    run, calls = contract(tmp_path, BOTH, Task.CLASSIFICATION)
    assert run.ending is Ending.FINISHED, run.reason
    assert calls == "segmentation classification"
    table = (tmp_path / "work" / "output" / "predictions.csv").read_text()
    assert table == "patient_id,pcr,score\nA_1,1,0.75\n"


def test_the_method_for_both_tasks_replaces_the_two_others(tmp_path):
    run, calls = contract(tmp_path, BOTH + COMBINED, Task.BOTH)
    assert run.ending is Ending.FINISHED, run.reason
    assert calls == "combined"
    assert (tmp_path / "work" / "output" / "predictions.csv").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return Table()", "return None", "to return a pandas DataFrame"),
        (
            "def predict_classification",
            "def predict_other",
            "expected class Model of the submission",
        ),
        ("class Model:", "import no_such_thing\nclass Model:", "importing model.py"),
        ("self.calls = []", "raise ValueError('no weights')", "Model(dataset)"),
        ("self.calls = []", "raise SystemExit(0)", "SystemExit"),
        ("self.calls = []", "import os; os._exit(0)", "ended early (exit code 0)"),
        ("self.calls = []", "import os; os.kill(os.getpid(), 9)", "(exit code 137)"),
    ],
)
def test_each_breach_of_the_programs_contract_has_its_reason(tmp_path, old, new, expected):
    run, _ = contract(tmp_path, BOTH.replace(old, new), Task.BOTH)
    assert run.ending in (Ending.FAILED, Ending.DIED)
    assert expected in run.reason


def test_a_missing_method_is_named(tmp_path):
    text = BOTH.replace("def predict_classification", "def predict_other")
    run, calls = contract(tmp_path, text, Task.BOTH)
    assert run.ending is Ending.FAILED
    assert "to have a method predict_classification" in run.reason
    assert calls == ""


def test_a_model_that_imports_with_a_dot_is_loaded_as_a_package(tmp_path):
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "helper.py").write_text("NAME = 'helper'\n")
    text = "from .helper import NAME\n" + BOTH.replace('" ".join(self.calls)', "NAME")
    (folder / "model.py").write_text(text)
    run = foreign.job_of(tmp_path, folder, OPEN, task=Task.BOTH)
    assert run.ending is Ending.FINISHED, run.reason
    assert (tmp_path / "work" / "output" / "calls.txt").read_text() == "helper"


def test_limits_below_zero_are_refused():
    with pytest.raises(ValueError, match="seconds"):
        RunLimits(seconds=0)
    assert RunLimits().memory_bytes < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
