"""What a drop is, said after a bounded look; nothing here needs pydicom."""

import zipfile
from pathlib import Path

import pytest

from napari_mamamia.io.dicom import probe
from napari_mamamia.io.dicom.probe import dicom_source

MARKED = bytes(128) + b"DICM" + bytes(40)


def write(path, content=MARKED):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def opened(monkeypatch):
    """Return the paths that were opened, one for each time."""
    paths = []
    for door, name in ((Path, "open"), (probe, "open_plain"), (probe, "open_zip")):
        monkeypatch.setattr(door, name, noting(getattr(door, name), paths))
    return paths


def noting(door, paths):
    """Return `door`, and note what goes through it."""

    def noted(path, *args, **kwargs):
        paths.append(path)
        return door(path, *args, **kwargs)

    return noted


def test_a_folder_of_files_with_the_mark_is_its_own_source(tmp_path):
    write(tmp_path / "IM0001")
    assert dicom_source([tmp_path]) == tmp_path


def test_a_study_four_folders_deep_is_found_from_its_top(tmp_path):
    write(tmp_path / "patient" / "study" / "series" / "part" / "0001.dcm")
    write(tmp_path / "patient" / "report.txt", b"text")
    assert dicom_source([tmp_path]) == tmp_path


def test_an_index_of_a_disc_is_enough(tmp_path):
    write(tmp_path / "DICOMDIR", b"anything")
    assert dicom_source([tmp_path]) == tmp_path


def test_ten_thousand_other_files_cost_a_few_opened_ones(tmp_path, opened):
    for k in range(10_000):
        (tmp_path / f"file_{k}{('', '.dcm', '.txt')[k % 3]}").touch()
    opened.clear()
    assert dicom_source([tmp_path]) is None
    assert 0 < len(opened) <= 4


def test_many_folders_without_dicom_cost_a_bounded_number_of_opened_files(tmp_path, opened):
    for k in range(80):
        (tmp_path / f"folder_{k}" / "deep").mkdir(parents=True)
        for n in range(3):
            (tmp_path / f"folder_{k}" / f"file_{n}").touch()
    opened.clear()
    assert dicom_source([tmp_path]) is None
    assert 0 < len(opened) <= 64 + 3


def test_one_file_stands_for_its_folder_and_several_for_theirs(tmp_path):
    files = [write(tmp_path / f"IM_{k}.dcm") for k in range(3)]
    assert dicom_source(files[:1]) == tmp_path
    assert dicom_source(files) == tmp_path


def test_files_of_two_folders_are_no_source(tmp_path):
    files = [write(tmp_path / name / "IM.dcm") for name in ("a", "b")]
    assert dicom_source(files) is None


def test_nothing_dropped_or_a_missing_path_is_no_source(tmp_path):
    assert dicom_source([]) is None
    assert dicom_source([tmp_path / "missing"]) is None


def test_a_zip_is_told_by_what_is_in_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "study.zip", "w") as archive:
        archive.writestr("study/readme.txt", "text")
        archive.writestr("study/IM0001", MARKED)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("table.csv", "a,b")
    assert dicom_source([tmp_path / "study.zip"]) == tmp_path / "study.zip"
    assert dicom_source([tmp_path / "other.zip"]) is None


def test_a_damaged_zip_is_no_source(tmp_path):
    with zipfile.ZipFile(tmp_path / "study.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("IM0001", MARKED * 50)
    content = bytearray((tmp_path / "study.zip").read_bytes())
    content[40:60] = bytes(20)
    (tmp_path / "study.zip").write_bytes(content)
    assert dicom_source([tmp_path / "study.zip"]) is None


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    assert dicom_source([tmp_path]) is None
