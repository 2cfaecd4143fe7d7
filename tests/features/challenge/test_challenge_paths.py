"""A challenge run from a folder of its own with relative paths, and without the extra `dicom`."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import ids, write_references, write_team

N = 6
WITHOUT_PYDICOM = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("highdicom", "pydicom"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Go to a folder with references and a clinical table, as an organiser does."""
    write_references(tmp_path, N)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def challenge(*words):
    return mamamia("challenge", *words, has_figures=False)


def responses():
    rows = [f"{case},{int(at % 3 == 0)},0.{at + 1}" for at, case in enumerate(ids(N))]
    return "\n".join(("patient_id,pcr,score", *rows))


def scores():
    return "\n".join(("case_id,dsc,norm_hd", *(f"{case},0.{at + 3},0.1" for at, case in
                                               enumerate(ids(N)))))  # fmt: skip


def test_relative_paths_reach_every_kind_of_submission(here):
    begun = challenge(
        "init", "ch", "--reference", "reference", "--clinical", "clinical.csv",
        "--task", "both", "--bootstrap", 20, "--take-tables",
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    teams = Path("ch", "submissions")
    write_team(teams / "masks", 1, N)
    (teams / "masks" / "predictions.csv").write_text(responses())
    (teams / "answers.csv").write_text(responses())
    (teams / "given.csv").write_text(scores())
    with zipfile.ZipFile(teams / "zipped.zip", "w") as archive:
        archive.writestr("predictions.csv", responses())
    done = challenge("run", "ch")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1st attempt: scored") == 4
    ranked = challenge("rank", "ch", "--out", "board")
    assert ranked.returncode == 0, ranked.stderr
    for folder in ("ch", "board"):
        proved = challenge("verify", folder)
        assert proved.returncode == 0, proved.stdout + proved.stderr
        assert f"every score of {folder}" in proved.stdout


@pytest.mark.parametrize(
    "limit",
    [(), ("--time-limit", 60), ("--workers", 1)],
    ids=["this process", "a child", "a worker"],
)
def test_a_missing_extra_stops_and_no_case_counts_as_the_worst(here, limit):
    write_team(here / "team", 1, 2)
    (here / "team" / "C_02.dcm").write_bytes(bytes(128) + b"DICM")
    done = without_pydicom(here, "score", "--reference", "reference", "--prediction", "team",
                           "--out", "out", "--bootstrap", 0, *limit)  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert 'pip install "napari-mamamia[dicom]"' in done.stderr
    assert not (here / "out" / "case_scores.csv").exists()


def test_a_missing_extra_uses_up_no_attempt(here):
    begun = challenge("init", "ch", "--reference", "reference", "--task", "segmentation",
                      "--bootstrap", 0, "--attempts", 1)  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    team = write_team(Path("ch/submissions/team"), 1, N)
    (team / "C_02.nii.gz").unlink()
    (team / "C_02.dcm").write_bytes(bytes(128) + b"DICM")
    for words in (("run", "ch"), ("run", "ch", "--express")):
        done = without_pydicom(here, "challenge", *words)
        assert done.returncode == 1, done.stdout
        assert 'pip install "napari-mamamia[dicom]"' in done.stderr
        assert not list(Path("ch/results/team").rglob("submission.json"))
    assert not any(path.stat().st_size for path in Path("ch/attempts").rglob("*.jsonl"))
    done = challenge("run", "ch")
    assert "team (masks), 1st attempt: scored" in done.stdout


def without_pydicom(folder, *words):
    """Run `mamamia` in a Python that has neither pydicom nor highdicom."""
    hidden = folder / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "sitecustomize.py").write_text(WITHOUT_PYDICOM)
    return subprocess.run(
        [sys.executable, "-c", "from napari_mamamia.cli import main; main()", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(hidden)}, cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_brackets_in_a_table_are_text(here):
    """Rich would take [dicom] for markup and :cat: for a picture."""
    begun = challenge("init", "ch", "--reference", "reference", "--task", "segmentation",
                      "--bootstrap", 0)  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    team = write_team(Path("ch/submissions/team [dicom] of cats"), 0, N)
    (team / "C_00.nii.gz").unlink()
    done = challenge("run", "ch")
    assert done.returncode == 3
    assert "team [dicom] of cats: problems" in done.stdout


def test_many_tables_are_refused_before_they_are_read_and_in_a_short_line(here):
    """20,000 tables in a zip took 38 s, and a line of 3.5 MB in the ledger."""
    begun = challenge("init", "ch", "--clinical", "clinical.csv", "--task", "classification",
                      "--bootstrap", 0)  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    with zipfile.ZipFile("ch/submissions/many.zip", "w") as archive:
        for at in range(300):
            archive.writestr(f"t{at}.csv", "a\n1\n")
    done = challenge("run", "ch")
    assert done.returncode == 3
    assert "found 300 (t0.csv, t1.csv, t10.csv" in done.stderr
    assert "and 290 more): submit one table" in done.stderr
    assert len(done.stderr) < 1000
    assert max(path.stat().st_size for path in Path("ch/attempts").rglob("*.jsonl")) < 3000


def test_tables_beside_masks_that_are_not_read_are_named(here):
    begun = challenge("init", "ch", "--reference", "reference", "--clinical", "clinical.csv",
                      "--task", "both", "--bootstrap", 0)  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    team = write_team(Path("ch/submissions/team"), 1, N)
    for at in range(40):
        (team / f"features_{at}.csv").write_text("a\n1\n")
    (team / "predictions.csv").write_text(responses())
    done = challenge("run", "ch")
    assert "note: expected one table, but found 41 (features_0.csv" in " ".join(done.stdout.split())
