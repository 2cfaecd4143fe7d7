"""A tree of DICOM studies is listed by its names; headers are read when a case is opened."""

import os
import pickle
import shutil
from dataclasses import replace

import pytest
from tests.dicom_phantoms import write_exam

from napari_mamamia.io.exam import phases
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.case.data_set import CaseRow, open_data_set

VISITS = ("01-05-2001-NA-MRI BREAST-11111", "02-05-2001-NA-MRI BREAST-22222")


@pytest.fixture
def tree(tmp_path):
    """Two patients with two visits of three phases, as the NBIA Data Retriever writes them."""
    root = tmp_path / "manifest"
    for patient in ("P1", "P2"):
        for visit, date in zip(VISITS, ("20010105", "20010205"), strict=True):
            uid = f"1.2.{patient[1]}.{date}"
            write_exam(
                root / "Coll" / patient / visit / "3.000000-dyn-1",
                StudyInstanceUID=uid,
                StudyDate=date,
            )
    return root


@pytest.fixture
def read_folders(monkeypatch):
    """The folders whose headers were read."""
    folders = []
    find_phases = phases.find_phases

    def noted(folder, *words, **settings):
        folders.append(folder)
        return find_phases(folder, *words, **settings)

    monkeypatch.setattr(phases, "find_phases", noted)
    return folders


def test_listing_a_tree_reads_no_study(tree, read_folders, tmp_path):
    opened = open_data_set(tree, tmp_path / "work")
    rows = [CaseRow(case, None, (), ()) for case in opened.data_set.cases]
    assert [(row.n_phases, row.status, row.problems) for row in rows] == [(None, "new", ())] * 4
    assert "Deferred" in repr(opened.data_set.cases[0])
    assert not read_folders


def test_a_study_is_read_once_when_its_phases_are_used(tree, read_folders):
    case = find_data_set(tree).case("P1_02-05-2001")
    assert case.is_pending
    assert (len(case.phases), tuple(case.problems)) == (3, ())
    assert not case.is_pending
    assert case.warnings == replace(case, side="left").warnings
    assert read_folders == [tree / "Coll" / "P1" / VISITS[1]]
    assert CaseRow(case, None, (), ()).n_phases == 3


def test_the_problem_of_a_study_appears_when_it_is_read(tree):
    study = tree / "Coll" / "P1" / VISITS[0]
    file = next(study.rglob("IM*"))
    file.write_bytes(file.read_bytes()[:200])
    case = find_data_set(tree).case("P1_01-05-2001")
    row = CaseRow(case, None, (), ())
    assert row.status == "new"
    assert len(case.problems) == 1
    assert row.status == "problem"
    assert str(study) in row.problems[0]


def test_new_names_of_cases_read_no_study(tree, tmp_path, read_folders):
    file = next((tree / "Coll" / "P1").rglob("IM*"))
    file.write_bytes(file.read_bytes()[:200])
    names = {"P1_01-05-2001": "case 7"}
    opened = open_data_set(tree, tmp_path / "work", names=names)
    assert not read_folders
    assert len(opened.data_set.case("case 7").problems) == 1


def test_a_pending_case_goes_to_another_process(tree):
    case = pickle.loads(pickle.dumps(find_data_set(tree).cases[0]))
    assert case.is_pending
    assert len(case.phases) == 3


def test_output_folders_inside_a_pending_study_are_known(tree):
    data_set = find_data_set(tree)
    assert tree / "Coll" / "P1" / VISITS[0] / "3.000000-dyn-1" in data_set.folders
    assert all(case.is_pending for case in data_set.cases)


def test_visits_in_folders_of_uids_have_dates_of_one_header(tree, read_folders):
    for patient in (tree / "Coll").iterdir():
        for number, visit in enumerate(sorted(patient.iterdir(), reverse=True)):
            (visit / "LICENSE").write_text("Terms of use")
            shutil.move(visit / "3.000000-dyn-1", visit / f"1.2.3.4.{number}.5")
            visit.rename(patient / f"1.2.3.4.{number}")
    cases = find_data_set(tree).cases
    assert [(case.patient, case.visit.name, case.visit.index) for case in cases] == [
        (patient, date, index)
        for patient in ("P1", "P2")
        for index, date in enumerate(("2001-01-05", "2001-02-05"))
    ]
    assert not read_folders
    assert os.fspath(cases[0].source).endswith("1.2.3.4.1")
