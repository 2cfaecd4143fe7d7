"""Two visits of one patient in a study: read, listed and exported as two exams."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.review_robot import read_all
from typer.testing import CliRunner

import napari_mamamia as mm
from napari_mamamia.cli.app import app
from napari_mamamia.features.review.io.study_file import read_study
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import TaskRow
from napari_mamamia.features.review.widgets.reading_view import _describe_row
from napari_mamamia.io.data_set.volumes import write_volume

GRID = mm.Grid.of_spacing((2, 4, 5), (2.0, 1.0, 1.0))
EXAMS = [(f"P{number}_{visit}", f"P{number}", visit, "") for number in (1, 2) for visit in "AB"]


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """Two patients with the visits A and B, in the layout BIDS."""
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))
    for _, patient, visit, _ in EXAMS:
        folder = tmp_path / "data" / f"sub-{patient}" / f"ses-{visit}" / "anat"
        folder.mkdir(parents=True)
        for run in (1, 2):
            volume = np.arange(40, dtype=np.float32).reshape(GRID.shape) * run
            name = f"sub-{patient}_ses-{visit}_run-{run}_T1w.nii.gz"
            write_volume(volume, GRID, folder / name)
    return tmp_path / "data"


def run(*words):
    result = CliRunner().invoke(app, ["review", *map(str, words)])
    assert result.exit_code == 0, result.output


def test_visits_are_columns_of_a_study_and_of_its_tables(data, tmp_path):
    study, masks = tmp_path / "study", tmp_path / "masks"
    people = ("--lead", "Lea", "--reader", "Ana", "--reader", "Ben")
    run("init", data, "--out", study, *people, "--hide", "reference", "--freeze")
    frozen, _ = read_study(study)
    assert [(case.case_id, *case.exam) for case in frozen.cases] == EXAMS
    masks.mkdir()
    mm.write_mask(mm.Mask(GRID, np.ones(GRID.shape, bool)), masks / "a.nii.gz")
    read_all(study, tmp_path / "home", masks)
    run("export", study, "--out", tmp_path / "out", "--format", "masks", "--format", "answers")
    for name in ("cases.csv", "answers/answers_wide.csv"):
        with (tmp_path / "out" / name).open(encoding="utf-8", newline="") as stream:
            rows = [
                tuple(row[key] for key in ("case_id", "patient", "visit", "side"))
                for row in csv.DictReader(stream)
            ]
        assert sorted(set(rows)) == EXAMS
    expert = tmp_path / "out" / "masks" / "segmentations" / "expert"
    assert {path.name.split(".")[0] for path in expert.glob("*.nii.gz")} == {
        case_id for case_id, *_ in EXAMS
    }


def test_a_study_that_hides_sites_hides_patients_and_visits(data, tmp_path):
    people = ("--lead", "Lea", "--reader", "Ana", "--reader", "Ben")
    run("init", data, "--out", tmp_path / "study", *people, "--freeze")
    frozen, _ = read_study(tmp_path / "study")
    assert frozen.hides_site
    assert {case.exam for case in frozen.pseudonymized.cases} == {("", "", "")}


def test_the_work_list_names_the_visit():
    assert "visit T0" in _describe_row(TaskRow(None, "P_T0", CaseState.READ, "T0"))
    assert "visit" not in _describe_row(TaskRow(None, "P", CaseState.READ))
