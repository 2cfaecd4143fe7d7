"""What a user opens: paths on the command line, a drop, the start page."""

import numpy as np
import pytest
from tests import dicom_phantoms as phantoms

import napari_mamamia as mm
from napari_mamamia.core.errors import FormatError, GridMismatchError
from napari_mamamia.io.data_set.volumes import read_volume, write_volume
from napari_mamamia.io.files.user_folders import linked_cases_folder
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.case.sources import SourceKind, find_source, link_volumes
from napari_mamamia.services.dicom.check import default_target

GRID = mm.Grid.of_spacing((2, 4, 5), (2.0, 1.0, 1.0))


@pytest.fixture(autouse=True)
def documents(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_DOCUMENTS_DIR", raising=False)


def volumes(folder, *names, grid=GRID):
    folder.mkdir(exist_ok=True)
    for index, name in enumerate(names):
        write_volume(np.full(grid.shape, index, np.int16), grid, folder / name)
    return [folder / name for name in names]


def test_a_patients_folder_leads_to_its_only_study(tmp_path):
    patient = tmp_path / "patient"
    series = patient / "study" / "series"
    series.mkdir(parents=True)
    phantoms.write_exam(series)
    (patient / "LICENSE").write_text("text")
    assert find_source([patient])[0] is SourceKind.DICOM
    assert find_data_set(patient).root == patient / "study"


def test_a_folder_of_two_studies_is_imported(tmp_path):
    for name in ("a", "b"):
        folder = tmp_path / "p" / name / "study" / "series"
        folder.mkdir(parents=True)
        phantoms.write_exam(folder)
    assert find_source([tmp_path / "p"]) == (SourceKind.ARCHIVE, tmp_path / "p")


def test_a_text_file_and_a_path_that_is_not_there_are_left_to_the_reader_of_data_sets(tmp_path):
    (tmp_path / "a.txt").write_text("no")
    for name in ("a.txt", "none"):
        assert find_source([tmp_path / name]) == (SourceKind.DATA_SET, tmp_path / name)
        with pytest.raises(FormatError):
            find_data_set(tmp_path / name)


def test_volumes_are_phases_in_the_order_in_which_they_are_named(tmp_path):
    post, pre, mask = volumes(tmp_path / "v", "a_post.nii.gz", "z_pre.nrrd", "tumour_mask.nii.gz")
    assert find_source([pre, post, mask])[0] is SourceKind.VOLUMES
    root, case_id = link_volumes([pre, post, mask])
    case = find_data_set(root).case(case_id)
    assert [read_volume(phase.files[0])[1].flat[0] for phase in case.phases] == [1, 0]
    assert case.reference is not None
    assert case.reference.resolve() == mask.resolve()
    assert root.parent == linked_cases_folder()
    assert link_volumes([pre, post, mask]) == (root, case_id)
    assert default_target(None, [root]) != root


def test_volumes_of_a_known_case_are_opened_in_its_data_set(tmp_path):
    paths = volumes(tmp_path / "d", "A_1_0000.nii.gz", "A_1_0001.nii.gz", "A_1_0002.nii.gz")
    assert link_volumes(paths[:2]) == (tmp_path / "d", "A_1")
    assert not linked_cases_folder().exists()


def test_volumes_that_are_no_phases_of_one_case_are_refused(tmp_path):
    (first,) = volumes(tmp_path / "a", "x.nii.gz")
    (other,) = volumes(tmp_path / "b", "y.nii.gz", grid=mm.Grid.of_spacing((2, 4, 6), (2, 1, 1)))
    masks = volumes(tmp_path / "c", "mask_1.nii.gz", "mask_2.nii.gz")
    with pytest.raises(GridMismatchError):
        link_volumes([first, other])
    with pytest.raises(FormatError):
        link_volumes([first, *masks])
    (tmp_path / "a.txt").write_text("no")
    with pytest.raises(FormatError):
        link_volumes([first, tmp_path / "a.txt"])
    assert not linked_cases_folder().exists()
