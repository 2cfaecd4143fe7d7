"""What the trials judge by: a changed voxel, weight, digest or number is seen, a pace is not."""

import gzip
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from same import content, fault_of


def test_the_same_voxels_in_other_bytes_are_the_same_and_one_more_voxel_is_not(tmp_path):
    one, other, more = (tmp_path / f"{k}.nii.gz" for k in range(3))
    for path, level, value in ((one, 1, 0), (other, 9, 0), (more, 1, 1)):
        path.write_bytes(gzip.compress(bytes(999) + bytes([value]), level))
    assert one.read_bytes() != other.read_bytes()
    assert content(one) == content(other) != content(more)


def test_weights_are_compared_to_the_bit_whenever_they_were_written(tmp_path):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    path, found = tmp_path / "w.safetensors", []
    for value, moment, trainer in (
        (0.0, "2026-01-01T10:00:00", "a"),
        (0.0, "2026-01-02T11:30:09", "a"),
        (-0.0, "2026-01-01T10:00:00", "a"),
        (0.0, "2026-01-01T10:00:00", "b"),
    ):
        save_file({"x": np.float32([1, value])}, path, {"made": moment, "trainer": trainer})
        found.append(content(path))
    assert found[0] == found[1]
    assert found[2] != found[0]
    assert found[3] != found[0]


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"mask", ""), (b"Mask", "is another"), (b"ma", "another size"), (None, "FileNotFound")],
)
def test_a_manifest_is_held_against_the_files_beside_it(tmp_path, data, told):
    entry = {"name": "A.nii.gz", "sha256": hashlib.sha256(b"mask").hexdigest(), "n_bytes": 4}
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"files": [], "cases": [{"files": [entry]}]}))
    if data is not None:
        (tmp_path / "A.nii.gz").write_bytes(data)
    said = fault_of(path)
    assert told in said
    assert bool(told) == bool(said)


def test_a_table_is_the_same_whatever_its_cases_took(tmp_path):
    path, found = tmp_path / "case_scores.csv", []
    for row in ("A,0.9,12.5,300", "A,0.9,99,310", "A,0.8,12.5,300"):
        path.write_text(f"case_id,dsc,seconds,peak_memory_bytes\n{row}\n")
        found.append(content(path))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.parquet", b"PAR1 and no end"), ("a.html", b"<html>"), ("a.json", b"{"), ("a.nii", b"")],
)
def test_half_a_file_is_seen(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert name in fault_of(tmp_path / name)
