import json

import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.patient_info import PatientInfo, read_patient_info, read_times_file

COORDINATES = {"x_min": 1, "x_max": 158, "y_min": 6, "y_max": 276, "z_min": 2, "z_max": 176}


def write(tmp_path, content):
    path = tmp_path / "duke_001.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_times_and_breast_box_are_read(tmp_path):
    content = {
        "patient_id": "DUKE_001",
        "primary_lesion": {"breast_coordinates": COORDINATES},
        "imaging_data": {"acquisition_times": [0, 165, 288]},
        "clinical_data": {"age": 41},
    }
    info = read_patient_info(write(tmp_path, content))
    assert info.acquisition_times_s == (0.0, 165.0, 288.0)
    assert info.breast_box == Box((1, 6, 2), (158, 276, 176))


def test_times_as_text_are_read(tmp_path):
    content = {"imaging_data": {"acquisition_times": "[0, 165, 288]"}}
    assert read_patient_info(write(tmp_path, content)).acquisition_times_s == (0.0, 165.0, 288.0)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"imaging_data": None, "primary_lesion": None},
        {"imaging_data": {"acquisition_times": None}},
        {"imaging_data": {"acquisition_times": float("nan")}},
        {"imaging_data": {"acquisition_times": ""}},
        {"primary_lesion": {"breast_coordinates": dict.fromkeys(COORDINATES)}},
        {"primary_lesion": {"breast_coordinates": {}}},
    ],
)
def test_missing_entries_give_none_and_no_doubt(tmp_path, content):
    assert read_patient_info(write(tmp_path, content)) == PatientInfo()


@pytest.mark.parametrize("times", ["unknown", [0, 100, 90], [0, None], 7, [[0], [1]], {"a": 1}])
def test_odd_times_give_none_and_what_stands_there(tmp_path, times):
    info = read_patient_info(write(tmp_path, {"imaging_data": {"acquisition_times": times}}))
    assert info == PatientInfo(times_problem=str(times))


@pytest.mark.parametrize(
    "box",
    [
        {"x_min": 1},
        COORDINATES | {"x_max": 0},
        COORDINATES | {"y_min": -1},
        COORDINATES | {"y_min": "6"},
        COORDINATES | {"z_min": float("nan")},
        [1, 158, 6, 276, 2, 176],
        "1 158 6 276 2 176",
    ],
)
def test_an_odd_breast_box_gives_none_and_what_stands_there(tmp_path, box):
    info = read_patient_info(write(tmp_path, {"primary_lesion": {"breast_coordinates": box}}))
    assert info == PatientInfo(box_problem=str(box)[:120])


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "\x00"])
def test_a_file_that_is_no_json_object_is_refused_by_name(tmp_path, content):
    with pytest.raises(FormatError, match=r"duke_001\.json"):
        read_patient_info(write(tmp_path, content))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"none\.json"):
        read_patient_info(tmp_path / "none.json")


def test_times_of_several_cases_are_read_and_start_at_zero(tmp_path):
    entries = [
        {"case_id": "A", "times_s": [0, 90]},
        {"case_id": "B", "times_s": [10, 95.5, 200], "comment": "from the scanner"},
    ]
    times = read_times_file(write(tmp_path, entries))
    assert dict(times) == {"A": (0.0, 90.0), "B": (0.0, 85.5, 190.0)}
