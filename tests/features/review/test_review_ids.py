"""A study of a data set whose case ids are all that a folder's name may be, by the commands."""

import csv
import json

import numpy as np
import pytest
from tests.review_robot import read_all
from typer.testing import CliRunner

import napari_mamamia as mm
from napari_mamamia.cli.app import app
from napari_mamamia.features.review.io.study_file import read_case_list
from napari_mamamia.io.data_set.volumes import write_volume

GRID = mm.Grid.of_spacing((2, 4, 5), (2.0, 1.0, 1.0))
IDS = ("CASE", "Müller_Ü-1", "x" * 200, "=1+1", "-5", "a,b;'c")


def add_case(root, case_id):
    folder = root / "images" / case_id
    folder.mkdir(parents=True)
    volume = np.arange(40, dtype=np.float32).reshape(GRID.shape)
    for phase in range(2):
        write_volume(volume, GRID, folder / f"{case_id}_{phase:04d}.nii.gz")


def run(*words, expected=0):
    result = CliRunner().invoke(app, ["review", *map(str, words)])
    assert result.exit_code == expected, result.output
    return " ".join(f"{result.output} {result.exception or ''}".split())


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))


def test_ids_go_through_a_study_as_they_are_and_what_cannot_be_is_refused(tmp_path):
    data, study, masks = tmp_path / "data", tmp_path / "study", tmp_path / "masks"
    for case_id in (*IDS, "case"):
        add_case(data, case_id)
    begin = ("init", data, "--out", study, "--lead", "Lea", "--reader", "Ana", "--reader", "Ben")
    # A folder's name has no slash, and of two that differ in letter case alone one must go.
    said = run(*begin, "--case", "a/b", expected=1)
    assert "but 'a/b' matches none of its 6: check the spelling" in said
    said = run(*begin, "--freeze", expected=1)
    assert "CASE_0001.nii.gz and images/case/case_0001.nii.gz; keep one of them" in said
    assert not study.exists()
    run(*begin, "--hide", "reference", "--freeze", "--without-broken")
    masks.mkdir()
    mm.write_mask(mm.Mask(GRID, np.ones(GRID.shape, bool)), masks / "a.nii.gz")
    read_all(study, tmp_path / "home", masks)
    # CASE and case are one id on other computers: neither is read.
    assert f"accepted {len(IDS) - 1}" in run("status", study)
    assert "No problem found." in run("verify", study)
    run("export", study, "--out", tmp_path / "out", "--format", "masks")
    table = tmp_path / "out" / "cases.csv"
    with table.open(encoding="utf-8", newline="") as stream:
        cells = [row["case_id"] for row in csv.DictReader(stream)]
    # What a spreadsheet program would run has an apostrophe, which reading takes away again.
    assert {"'=1+1", "-5"} < set(cells)
    listed = tmp_path / "ids.txt"
    listed.write_text("\n".join(cells), "utf-8")
    assert set(read_case_list(listed)) == set(IDS) - {"CASE"}
    exported = json.loads((tmp_path / "out" / "export.json").read_text("utf-8"))
    stems = {one["name"].split("/")[-1].removesuffix(".nii.gz") for one in exported["files"]}
    assert {"=1+1", "x" * 200, "Müller_Ü-1"} < stems
