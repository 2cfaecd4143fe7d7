"""`mamamia` never replaces a mask that somebody else made: the commands as they are typed."""

import json

import pytest
from tests.cli.warm_program import mamamia

pytestmark = pytest.mark.door


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("command", ["predict", "kinetics", "score"])
def test_no_run_writes_into_the_folder_that_it_reads_not_even_with_overwrite(
    small_data_set, tmp_path, command
):
    expert = small_data_set / "segmentations" / "expert"
    words = {
        "predict": ["predict", small_data_set, "--out", expert],
        "kinetics": ["kinetics", small_data_set, "--out", small_data_set],
        "score": ["score", "--reference", expert, "--prediction", expert, "--out", expert],
    }[command]
    before = contents(small_data_set)
    done = mamamia(*words, "--overwrite")
    assert done.returncode == 1
    assert "expected the output folder not to contain the run's inputs" in done.stderr
    assert contents(small_data_set) == before


def test_a_run_that_goes_on_keeps_masks_that_it_did_not_write(small_data_set, tmp_path):
    """A_1 stays as predicted, A_2 is not noted, B_1 was corrected by hand since."""
    out = tmp_path / "out"
    assert mamamia("predict", small_data_set, "--out", out).returncode == 0
    predicted = contents(out)
    store = out / "case_results.jsonl"
    lines = store.read_text().splitlines(keepends=True)
    own = ["A_1", "B_1"]
    store.write_text("".join(line for line in lines if json.loads(line)["entry"]["case_id"] in own))
    for case_id in ("A_2", "B_1"):
        expert = small_data_set / "segmentations" / "expert" / f"{case_id}.nii.gz"
        (out / f"{case_id}.nii.gz").write_bytes(expert.read_bytes())
    before = contents(out)
    done = mamamia("predict", small_data_set, "--out", out, "--resume")
    assert done.returncode == 3, done.stderr
    for case_id in ("A_2", "B_1"):
        assert f"failed: {case_id}:" in done.stderr
    assert "to be a mask that this run wrote, but another program made or changed it" in " ".join(
        done.stderr.split()
    )
    after = contents(out)
    for name in ("A_1.nii.gz", "A_2.nii.gz", "A_2.json", "B_1.nii.gz", "B_1.json"):
        assert after[out / name] == before[out / name], name
    for case_id in ("A_2", "B_1"):  # as a killed run left it: written, but not noted
        (out / f"{case_id}.nii.gz").write_bytes(predicted[out / f"{case_id}.nii.gz"])
        (out / f"{case_id}.json").unlink()
    assert mamamia("predict", small_data_set, "--out", out, "--resume").returncode == 0
    assert (out / "A_2.json").is_file()


def test_where_the_provenance_cannot_be_written_the_older_mask_stays(small_data_set, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "A_1.nii.gz").write_bytes(b"an older mask")
    (out / "A_1.json").mkdir()  # a folder cannot be replaced by a file
    done = mamamia("predict", small_data_set, "--case", "A_1", "--out", out, "--overwrite")
    assert done.returncode == 3
    assert "failed: A_1:" in done.stderr
    assert (out / "A_1.nii.gz").read_bytes() == b"an older mask"
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]
