"""A submission from folder to scores, as a user runs it; and what becomes of one that errs."""

import csv
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.core.errors import ModelError, Remedy, SaveConflictError
from napari_mamamia.core.records import FailureCause
from napari_mamamia.features.challenge.services.submission.run_submission import (
    SubmissionSettings,
    choose_isolation,
    run_submission,
)
from napari_mamamia.io.workspace.provenance import read_provenance
from napari_mamamia.segmentation.sandbox.sandbox import RunLimits
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import open_data_set

sys.path.insert(0, str(Path(__file__).parents[2] / "segmentation"))
import foreign

DEMO = Path(foreign.__file__).parent / "demo_submission"
settings_of = partial(SubmissionSettings, as_root=True)  # where the tests run as root
OPEN = settings_of(isolation=IsolationKind.NONE, consent=True, task=Task.SEGMENTATION)


@pytest.fixture
def room():
    found = foreign.sandbox()
    if isinstance(found, str):
        pytest.skip(found)
    return found


# writes an empty mask for each case; needs no package, so that a run costs 0.2 s
WRITE_MASKS = """
import gzip
(out / "pred_segmentations").mkdir()
for case_id in self.dataset.get_patient_id_list():
    with gzip.open(self.dataset.get_dce_mri_path_list(case_id)[0]) as stream:
        header = bytearray(stream.read(352))
    header[70:74] = (2).to_bytes(2, "little") + (8).to_bytes(2, "little")
    header[112:120] = bytes(8)
    n = 1
    for axis in range(3):
        n *= int.from_bytes(header[42 + 2 * axis : 44 + 2 * axis], "little")
    with gzip.open(out / "pred_segmentations" / (case_id + ".nii.gz"), "wb") as stream:
        stream.write(bytes(header) + bytes(n))
"""


def run_small(small_data_set, tmp_path, body, settings=OPEN, **options):
    folder = foreign.write_submission(tmp_path / "small_sub", body)
    opened = open_data_set(small_data_set, tmp_path / "w")
    return run_submission(opened, folder, tmp_path / "out", settings, **options)


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_demo_submission_runs_unchanged_and_its_results_are_scored(
    small_data_set, tmp_path, room
):
    out = tmp_path / "out"
    done = invoke("run-submission", DEMO, small_data_set, "--out", out, "--as-root")
    assert done.exit_code == 0, done.output
    assert "isolation   isolated by bubblewrap" in done.output
    assert "licence     Demonstration only: own code of the tests, CC0." in done.output
    assert "all 3 predicted responses are 0: the challenge rejects" in done.output
    for case_id in ("A_1", "A_2", "B_1"):
        folder = small_data_set / "images" / case_id
        pre, post = (nib.load(folder / f"{case_id}_000{k}.nii.gz") for k in (0, 1))
        expected = np.asarray(post.dataobj, np.float32) - np.asarray(pre.dataobj) > 130
        written = nib.load(out / "pred_segmentations" / f"{case_id}.nii.gz")
        assert written.get_data_dtype() == np.uint8
        assert (np.asarray(written.dataobj) == expected).all()
        assert (written.affine == pre.affine).all()
    # 108 voxels of 0.8 x 0.8 x 2 mm; the demo's score is ml / (2 x 0.5 ml)
    with (out / "predictions.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["patient_id"] for row in rows] == ["A_1", "A_2", "B_1"]
    assert [row["pcr"] for row in rows] == ["0", "0", "0"]
    assert [float(row["score"]) for row in rows] == pytest.approx([0.13824] * 3, rel=1e-6)

    expert = small_data_set / "segmentations" / "expert"
    masks = out / "pred_segmentations"
    words = ["--reference", expert, "--prediction", masks, "--out", tmp_path / "scores"]
    scored = invoke("score", *words, "--bootstrap", "0")
    assert scored.exit_code == 0, scored.output
    with (tmp_path / "scores" / "case_scores.csv").open() as stream:
        assert [float(row["dsc"]) for row in csv.DictReader(stream)] == [1.0, 1.0, 1.0]

    clinical = tmp_path / "clinical.csv"
    clinical.write_text("patient_id,age,pcr\nA_1,51,0\nA_2,44,1\nB_1,60,0\n")
    words = ["--clinical", clinical, "--out", tmp_path / "pcr", "--bootstrap", "0"]
    scored = invoke("score-pcr", out / "predictions.csv", *words)
    assert scored.exit_code == 0, scored.output
    assert (tmp_path / "pcr" / "summary.json").exists()


def test_the_reference_and_other_cases_are_not_in_the_room(small_data_set, tmp_path, room):
    info = {"primary_lesion": {"pcr": 1}, "imaging_data": {"site": "S1", "age": 44}}
    (small_data_set / "patient_info_files").mkdir()
    (small_data_set / "patient_info_files" / "a_1.json").write_text(json.dumps(info))
    body = """
    import os
    files = [os.path.join(p, n) for p, _, names in os.walk("/app/input_data") for n in names]
    facts = self.dataset.read_json_file(self.dataset.get_patient_id_list()[0])
    print("FILES", sorted(files))
    print("FACTS", facts)
    """
    settings = settings_of(task=Task.SEGMENTATION)
    run_small(small_data_set, tmp_path, body + WRITE_MASKS.replace("\n", "\n    "), settings)
    log = (tmp_path / "out" / "logs" / "A_1.txt").read_text()
    folder = "/app/input_data/images/A_1"
    assert f"FILES {[f'{folder}/A_1_000{k}.nii.gz' for k in range(4)]}" in log
    assert "FACTS {'patient_id': 'A_1', 'imaging_data': {'site': 'S1'}}" in log
    assert "FACTS None" in (tmp_path / "out" / "logs" / "A_2.txt").read_text()


def test_without_isolation_result_log_and_screen_say_so(small_data_set, tmp_path):
    folder = foreign.write_submission(tmp_path / "small_sub", WRITE_MASKS)
    out = tmp_path / "out"
    words = ["run-submission", folder, small_data_set, "--out", out, "--as-root"]
    words += ["--task", "segmentation"]
    refused = invoke(*words, "--isolation", "none")
    assert isinstance(refused.exception, ModelError)
    assert refused.exception.remedies == (Remedy("consent_no_isolation"),)
    assert not out.exists()
    done = invoke(*words, "--isolation", "none", "--consent-no-isolation")
    assert done.exit_code == 0, done.output
    assert "isolation   not isolated" in done.output
    assert "note: not isolated: the submission could read" in done.output
    assert "not isolated" in (out / "logs" / "A_1.txt").read_text()
    made = read_provenance(out / "pred_segmentations" / "A_1.json")
    assert made.note == "challenge submission, not isolated"
    assert dict(made.parameters)["network"] == "not restricted"
    assert json.loads((out / "submission.json").read_text())["isolation"] == "not isolated"


def test_without_any_isolation_the_reasons_are_told_and_consent_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError) as refused:
        choose_isolation(settings_of())
    assert "apt install bubblewrap" in str(refused.value)
    found, reasons = choose_isolation(settings_of(consent=True))
    assert found.text == "not isolated"
    assert len(reasons) == 3


def test_provenance_holds_what_ran_on_what(small_data_set, tmp_path, room):
    settings = settings_of(task=Task.SEGMENTATION, limits=RunLimits(seconds=50))
    lasting = f"import time\ntime.sleep(0.5)  # so that somebody looks at its memory\n{WRITE_MASKS}"
    done = run_small(small_data_set, tmp_path, lasting, settings, case_ids=["A_2"])
    made = read_provenance(tmp_path / "out" / "pred_segmentations" / "A_2.json")
    found = dict(made.parameters)
    assert found["submission_sha256"] == done.submission.sha256
    assert (found["licence"], found["network"]) == ("no licence file", "none")
    assert (found["time_limit_s"], found["cases_in_one_run"]) == (50, 1)
    assert found["isolation"].startswith("isolated by bubblewrap")
    assert [i.name for i in made.inputs] == [f"A_2_000{k}.nii.gz" for k in range(4)]
    assert made.peak_memory_bytes > 1_000_000


FAIL_ON_A_2 = """
if self.dataset.get_patient_id_list() == ["A_2"]:
    raise ValueError("no lesion found")
"""


def test_the_express_lane_stops_at_the_first_breach_with_the_reason(small_data_set, tmp_path):
    settings = settings_of(Task.SEGMENTATION, 2, isolation=IsolationKind.NONE, consent=True)
    done = run_small(small_data_set, tmp_path, FAIL_ON_A_2 + WRITE_MASKS, settings)
    assert [saved.case_id for saved in done.saved] == ["A_1"]
    assert done.stopped == "stopped in the express lane at A_2: 1 other case not run"
    (failure,) = done.failures
    assert failure.case_id == "A_2"
    assert "ValueError: no lesion found" in failure.reason
    assert "logs/A_2.txt" in failure.reason
    assert not (tmp_path / "out" / "logs" / "B_1.txt").exists()
    with (tmp_path / "out" / "failures.csv").open() as stream:
        assert [row["case_id"] for row in csv.DictReader(stream)] == ["A_2"]


def test_after_the_express_lane_a_failure_costs_one_case(small_data_set, tmp_path):
    settings = settings_of(Task.SEGMENTATION, 1, isolation=IsolationKind.NONE, consent=True)
    done = run_small(small_data_set, tmp_path, FAIL_ON_A_2 + WRITE_MASKS, settings)
    assert [saved.case_id for saved in done.saved] == ["A_1", "B_1"]
    assert [failure.case_id for failure in done.failures] == ["A_2"]
    assert done.stopped == ""


def test_the_express_lane_has_its_own_time_limit(small_data_set, tmp_path):
    settings = settings_of(
        Task.SEGMENTATION, express_seconds=0.5, isolation=IsolationKind.NONE, consent=True
    )
    done = run_small(small_data_set, tmp_path, "while True: pass", settings)
    (failure,) = done.failures
    assert failure.cause is FailureCause.TIME_LIMIT
    assert "time limit of 0.5 s" in failure.reason
    assert done.stopped


def test_a_mask_that_breaks_the_contract_is_a_row_and_no_file(small_data_set, tmp_path):
    body = WRITE_MASKS.replace("+ bytes(n)", "+ bytes([3]) * n")
    done = run_small(small_data_set, tmp_path, body)
    assert done.saved == ()
    assert "but found also 3" in done.failures[0].reason
    assert not list((tmp_path / "out").rglob("A_1.nii.gz"))


def test_together_gives_all_cases_to_one_process_and_saves_once(small_data_set, tmp_path):
    body = 'print("GOT", self.dataset.get_patient_id_list())\n' + WRITE_MASKS
    settings = settings_of(
        Task.SEGMENTATION, 1, together=True, isolation=IsolationKind.NONE, consent=True
    )
    done = run_small(small_data_set, tmp_path, body, settings)
    assert [saved.case_id for saved in done.saved] == ["A_1", "A_2", "B_1"]
    assert done.failures == ()
    logs = tmp_path / "out" / "logs"
    assert "GOT ['A_1']" in (logs / "express.txt").read_text()
    assert "GOT ['A_1', 'A_2', 'B_1']" in (logs / "all_cases.txt").read_text()


def test_resuming_runs_only_what_is_missing(small_data_set, tmp_path):
    body = WRITE_MASKS
    run_small(small_data_set, tmp_path, body, case_ids=["A_1"])
    first = (tmp_path / "out" / "pred_segmentations" / "A_1.nii.gz").stat().st_mtime_ns
    with pytest.raises(SaveConflictError):
        run_small(small_data_set, tmp_path, body)
    done = run_small(small_data_set, tmp_path, body, existing=Existing.RESUME)
    assert done.skipped == ("A_1",)
    assert [saved.case_id for saved in done.saved] == ["A_2", "B_1"]
    kept = tmp_path / "out" / "pred_segmentations" / "A_1.nii.gz"
    assert kept.stat().st_mtime_ns == first
    with pytest.raises(SaveConflictError, match="a different run"):
        run_small(small_data_set, tmp_path, body + "\npass", existing=Existing.RESUME)


def test_a_case_in_one_4d_file_is_converted_for_the_submission(tmp_path):
    array = np.arange(3 * 4 * 5 * 6, dtype=np.int16).reshape(6, 5, 4, 3)
    nib.save(nib.Nifti1Image(array, np.diag([-0.8, 0.8, 2.0, 1.0])), tmp_path / "ONE.nii.gz")
    body = """
    import gzip, hashlib
    for path in self.dataset.get_dce_mri_path_list("ONE"):
        print("DATA", hashlib.sha256(gzip.open(path).read()[352:]).hexdigest())
    """
    run_small(tmp_path / "ONE.nii.gz", tmp_path, body)
    log = (tmp_path / "out" / "logs" / "ONE.txt").read_text()
    found = [line.split()[1] for line in log.splitlines() if line.startswith("DATA")]
    import hashlib

    volumes = [array[..., k].tobytes(order="F") for k in range(3)]
    assert found == [hashlib.sha256(volume).hexdigest() for volume in volumes]


def test_nothing_of_a_run_is_left_beside_its_results(small_data_set, tmp_path):
    body = """
    deep = out
    for _ in range(30):
        deep = deep / "closed"
        deep.mkdir()
    (out / "closed").chmod(0)
    """
    run_small(small_data_set, tmp_path, body + WRITE_MASKS.replace("\n", "\n    "))
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == [
        "failures.csv",
        "logs",
        "pred_segmentations",
        "run.json",
        "submission.json",
    ]
    assert not list(small_data_set.glob(".*"))


def test_root_runs_no_foreign_program_unless_asked_by_name(small_data_set, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    folder = foreign.write_submission(tmp_path / "small_sub", WRITE_MASKS)
    words = ["run-submission", folder, small_data_set, "--out", tmp_path / "out"]
    words += ["--isolation", "none", "--consent-no-isolation", "--task", "segmentation"]
    refused = invoke(*words)
    assert isinstance(refused.exception, ModelError)
    assert "this account is root" in str(refused.exception)
    assert refused.exception.remedies == (Remedy("as_root"),)
    assert not (tmp_path / "out").exists()
    done = invoke(*words, "--as-root")
    assert done.exit_code == 0, done.output
    assert "note: it ran as root" in done.output
    made = read_provenance(tmp_path / "out" / "pred_segmentations" / "A_1.json")
    assert dict(made.parameters)["as_root"] is True
    assert json.loads((tmp_path / "out" / "submission.json").read_text())["as_root"] is True


def test_an_ordinary_account_needs_no_such_option(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found, _ = choose_isolation(SubmissionSettings(isolation=IsolationKind.NONE, consent=True))
    assert found.kind is IsolationKind.NONE


ODD_OUTPUTS = """
import os, socket
raw = os.fsencode(str(out / "pred_segmentations"))
for name in (b"A_1\\xff.nii.gz", b"A\\n1.nii.gz", b"x" * 255):
    open(raw + b"/" + name, "wb").close()
os.mkfifo(out / "pipe")
socket.socket(socket.AF_UNIX).bind(str(out / "socket"))
os.symlink("/dev/zero", out / "device")
os.symlink("loop", out / "loop")
"""


def odd_submission(folder):
    """Write one whose files have names of other systems, and links that lead nowhere."""
    foreign.write_submission(folder, WRITE_MASKS + ODD_OUTPUTS.replace("\\\\", "\\"))
    try:
        for name in (b"w\xff\xe9.pth", b"a\nb.bin", b"back\\slash", b"y" * 255):
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)
        Path(os.fsdecode(os.fsencode(folder) + b"/d\xff")).mkdir()
        Path(os.fsdecode(os.fsencode(folder) + b"/d\xff/x.json")).write_text("{}")
    except OSError:
        pytest.skip("this disk has names of UTF-8 only")
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.txt")
    return folder


def sum_by_sha256sum(folder):
    """Return the sum of the list that sha256sum writes, in the order of Python's paths."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    names = [os.fsencode(file.relative_to(folder)) for file in files]
    listing = subprocess.run(["sha256sum", "--", *names], cwd=folder, capture_output=True,
                             check=True).stdout  # fmt: skip
    return subprocess.run(["sha256sum"], input=listing, capture_output=True, check=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes, pipes and sha256sum")
def test_names_that_are_no_utf8_and_links_to_nowhere_stop_nothing(small_data_set, tmp_path, room):
    folder = odd_submission(tmp_path / "odd")
    out = tmp_path / "out"
    words = ["--out", out, "--as-root", "--task", "segmentation", "--case", "A_1"]
    done = mamamia("run-submission", folder, small_data_set, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 file that may run programs: w\ufffd\ufffd.pth" in done.stdout
    assert sorted(path.name for path in (out / "pred_segmentations").iterdir()) == [
        "A_1.json",
        "A_1.nii.gz",
    ]
    expected = sum_by_sha256sum(folder).split()[0].decode()
    assert json.loads((out / "submission.json").read_text())["sha256"] == expected
    other = Path(os.fsdecode(os.fsencode(tmp_path) + b"/s\xff"))
    folder.rename(other)
    done = mamamia("run-submission", other, small_data_set, *words, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "submission.json").read_text("utf-8"))["name"] == "s\ufffd"


def test_a_missing_masks_neighbours_are_shown_with_bytes_that_are_no_utf8(
    small_data_set, tmp_path, room
):
    folder = foreign.write_submission(
        tmp_path / "sub",
        """
        import os
        (out / "pred_segmentations").mkdir()
        open(os.fsencode(str(out)) + b"/pred_segmentations/A_1\\xff.nii.gz", "wb").close()
        """,
    )
    words = ["--out", tmp_path / "out", "--as-root", "--task", "segmentation", "--case", "A_1"]
    done = mamamia("run-submission", folder, small_data_set, *words)
    assert done.returncode == 3
    assert "found A_1\ufffd.nii.gz: name each mask exactly" in done.stdout + done.stderr


KEEPS_SOCKETS = """
import socket, time
kept = []
for _ in range(1000):
    pair = socket.socketpair()
    pair[0].setblocking(False)
    try:
        while True: pair[0].send(bytes(65536))
    except BlockingIOError: kept.append(pair)
time.sleep(20)
"""


def test_memory_of_the_kernel_is_named_in_the_failure(small_data_set, tmp_path, room):
    folder = foreign.write_submission(tmp_path / "sub", KEEPS_SOCKETS)
    words = ["--out", tmp_path / "out", "--as-root", "--task", "segmentation", "--case", "A_1"]
    done = mamamia("run-submission", folder, small_data_set, *words, "--memory-limit", "0.2")
    assert done.returncode == 3
    assert (
        "expected at most 0.2 GB of memory, but the program used more (mostly sockets): raise "
        "the limit"
    ) in (done.stdout + done.stderr).replace("\n", " ")
    assert "(--memory-limit GB)" in done.stderr
