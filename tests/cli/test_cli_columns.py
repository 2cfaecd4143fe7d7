"""A table whose columns have other names, wherever a command reads it: --columns, or beside it."""

import csv
import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

pytestmark = pytest.mark.usefixtures("quick_figures")

COLUMNS = {
    "case_id": "Subject", "age": "Age (y)", "acquisition_times_s": "Scan times",
    "breast_density": None,
}  # fmt: skip


def mamamia(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output + ("" if done.exception is None else str(done.exception))


@pytest.fixture
def renamed(small_data_set):
    """Return a data set whose table calls everything otherwise, with other times than usual."""
    (small_data_set / "clinical_and_imaging_info.xlsx").unlink()
    lines = ["Subject,Age (y),menopause,Scan times,Site"]
    lines += [f'{case},{40 + k},post,"[0, 60, 170, 440]",B' for k, case in enumerate(CASES)]
    (small_data_set / "clinical_and_imaging_info.csv").write_text("\n".join(lines) + "\n")
    return small_data_set


CASES = ("A_1", "A_2", "B_1")


def write_columns(path, **more):
    path.write_text(json.dumps({**COLUMNS, **more}))
    return path


def test_without_the_file_the_table_is_not_read_and_that_is_said(renamed):
    code, said = mamamia("cases", renamed)
    assert code == 0, said
    assert "the clinical table could not be read: expected a column patient_id or case_id" in said


@pytest.mark.parametrize("is_beside", [True, False])
def test_the_file_is_given_or_lies_beside_the_table(renamed, tmp_path, is_beside):
    beside = renamed / "clinical_columns.json"
    file = write_columns(beside if is_beside else tmp_path / "names.json")
    given = () if is_beside else ("--columns", file)
    code, said = mamamia("kinetics", renamed, "--case", "A_1", "--out", tmp_path / "out", *given)
    assert code == 0, said
    assert f"clinical table: columns from {file.name}: case_id: Subject, age: Age (y)" in said
    with (tmp_path / "out/kinetics.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert (row["early_phase"], row["late_phase"]) == ("2", "3")
    assert float(row["early_s"]) != 180  # the usual times of this data set: 0, 90, 180, 420


def test_what_was_given_counts_more_than_what_lies_beside(renamed, tmp_path):
    write_columns(renamed / "clinical_columns.json", age="Site")
    other = write_columns(tmp_path / "names.json")
    code, said = mamamia("cases", renamed, "--columns", other)
    assert code == 0, said
    assert "columns from names.json" in said
    assert "clinical_columns.json" not in said


def test_a_file_that_does_not_fit_is_an_error_where_it_was_given_and_a_warning_beside(
    renamed, tmp_path
):
    wrong = write_columns(tmp_path / "names.json", age="Years")
    code, said = mamamia("cases", renamed, "--columns", wrong)
    assert (code, "expected the fixed column 'Years'" in said) == (1, True)
    write_columns(renamed / "clinical_columns.json", age="Years")
    code, said = mamamia("cases", renamed)
    assert (
        code,
        "warning: the clinical table could not be read: expected the fixed column" in said,
    ) == (
        0,
        True,
    )
    (renamed / "clinical_columns.json").write_text("[]")
    code, said = mamamia("cases", renamed)
    assert (code, "clinical_columns.json" in said) == (0, True)


def test_columns_of_a_data_set_without_a_table_are_an_error(renamed, tmp_path):
    (renamed / "clinical_and_imaging_info.csv").unlink()
    code, said = mamamia("cases", renamed, "--columns", write_columns(tmp_path / "names.json"))
    assert (code, "my data set to have a clinical table for the given columns" in said) == (1, True)


def test_scoring_takes_the_columns_that_lie_beside_the_table(renamed, tmp_path):
    table = renamed / "clinical_and_imaging_info.csv"
    masks = renamed / "segmentations/expert"
    words = ("score", "--reference", masks, "--prediction", masks, "--bootstrap", "0",
             "--clinical", table, "--out")  # fmt: skip
    code, said = mamamia(*words, tmp_path / "before")
    assert (code, "expected a column patient_id or case_id" in said) == (1, True)
    write_columns(renamed / "clinical_columns.json")
    code, said = mamamia(*words, tmp_path / "after")
    assert code == 0, said
    assert "age 3 of 3" in said
    assert "columns from clinical_columns.json" in said
    assert "columns from clinical_columns.json" in (tmp_path / "after/summary.json").read_text()
    code, said = mamamia("clinical", table)
    assert (code, "age: read from 'Age (y)'" in said) == (0, True)


def test_a_needed_field_without_a_value_is_told_in_lines_of_a_terminals_width(renamed, tmp_path):
    table = tmp_path / "a table.csv"
    further = ",".join(f"measure_{k}" for k in range(30))
    table.write_text(f"patient_id,Age (y),menopause,breast_density,{further}\n")
    with table.open("a") as stream:
        stream.writelines(f"{case},51,post,b{',' * 30}\n" for case in CASES)
    masks = renamed / "segmentations/expert"
    model = shutil.copytree(masks, tmp_path / "model")
    code, said = mamamia(
        "score", "--reference", masks, "--prediction", model, "--bootstrap", "0",
        "--clinical", table, "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 1
    lines = said.strip().splitlines()
    assert "a table.csv to have values of age for fairness" in lines[0]
    assert lines[0].endswith("found none in 3 cases (0 rows could not be read)")
    assert '  proposed: "Age (y)" as age for its name' in said
    assert "write the proposal to a file, check it" in " ".join(said.split())
    assert '  or: if the table has no such field, declare {"age": null}' in said
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 96


@pytest.mark.parametrize("is_beside", [True, False])
def test_an_import_adds_a_row_and_keeps_the_names_of_the_table(renamed, tmp_path, is_beside):
    pytest.importorskip("pydicom")
    beside = renamed / "clinical_columns.json"
    file = write_columns(beside if is_beside else tmp_path / "names.json")
    given = () if is_beside else ("--columns", file)
    phantoms.write_exam(tmp_path / "dicom")
    words = ("import", tmp_path / "dicom", "--out", renamed, "--case", "NEW_1")
    code, said = mamamia(*words, *given)
    assert code == 0, said
    with (renamed / "clinical_and_imaging_info.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    names = list(rows[0])
    assert {"Subject", "Age (y)", "Scan times", "Site", "menopause"} <= set(names)
    assert not {"patient_id", "age", "acquisition_times", "breast_density"} & set(names)
    assert [row["Subject"] for row in rows] == [*CASES, "NEW_1"]
    assert [row["Age (y)"] for row in rows] == ["40", "41", "42", ""]
    assert rows[0]["Scan times"] == "[0, 60, 170, 440]"
    assert rows[3]["Scan times"].startswith("[0,")
    code, said = mamamia("cases", renamed, *given)
    assert (code, "warning" in said) == (0, False)


def test_registered_cases_take_their_rows_along(renamed, tmp_path):
    pytest.importorskip("SimpleITK")
    write_columns(renamed / "clinical_columns.json")
    code, said = mamamia(
        "register", renamed, "--case", "A_2", "--transform", "rigid", "--out", tmp_path / "out"
    )
    assert code == 0, said
    with (tmp_path / "out/clinical_and_imaging_info.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert (row["patient_id"], row["age"], row["Site"]) == ("A_2", "41", "B")
    assert row["acquisition_times"] == "[0, 60, 170, 440]"


def test_a_data_sets_own_ods_is_read_but_takes_no_row(renamed, tmp_path):
    (renamed / "clinical_and_imaging_info.csv").unlink()
    made = Path(__file__).parents[1] / "io/ods/by_libreoffice.ods"
    (renamed / "clinical_and_imaging_info.ods").write_bytes(made.read_bytes())
    code, said = mamamia("cases", renamed)
    assert code == 0, said
    assert "warning: clinical_and_imaging_info.ods, row 5: age '#DIV/0!' is not a number" in said
    phantoms.write_exam(tmp_path / "dicom")
    code, said = mamamia("import", tmp_path / "dicom", "--out", renamed, "--case", "NEW_1")
    assert (
        code,
        "because .ods files can only be read; save it as .xlsx or .csv" in " ".join(said.split()),
    ) == (1, True)
    assert not (renamed / "images/NEW_1").exists()
