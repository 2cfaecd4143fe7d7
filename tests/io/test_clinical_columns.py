"""Columns of somebody else's table: proposed with a reason, fixed by a file, never guessed."""

import json

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.clinical.columns import ColumnChoice, read_columns, write_columns
from napari_mamamia.io.clinical.overview import overview_job, propose_columns
from napari_mamamia.services.score.clinical_table import read_table

FOREIGN = """Registry of 2024
Subject number,Age at diagnosis (y),Follow-up (months),Meno status,ACR density,Complete response
P-1,27,12,pre,b,0
P-2,84,30,post,c,1
P-3,NA,60,post,d,1
"""


@pytest.fixture
def foreign(tmp_path):
    (tmp_path / "foreign.csv").write_text(FOREIGN)
    return tmp_path / "foreign.csv"


def proposed(names, *rows):
    fields = ("case_id", "age", "menopausal_status", "breast_density", "pcr", "acquisition_times_s")
    found = propose_columns(dict(enumerate(names)), rows, fields)
    return {one.field: one.column for one in found}


def test_columns_are_proposed_for_their_name_unit_and_values(foreign):
    seen = overview_job(foreign)
    assert seen.cohort is None
    assert {one.field: one.column for one in seen.proposals} == {
        "case_id": "Subject number",
        "age": "Age at diagnosis (y)",
        "menopausal_status": "Meno status",
        "breast_density": "ACR density",
        "pcr": "Complete response",
    }
    (age,) = (one for one in seen.proposals if one.field == "age")
    assert age.reason == "its name, its unit y, and 2 values from 27 to 84"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Age (months)", [600, 700]),  # a unit that is not read
        ("Age", [2, 3]),  # no ages of patients
        ("Age", ["old", "young"]),
        ("Stage", [41, 42]),  # another word
        ("Age", [None, None]),
        ("Weight", [41, 42]),
    ],
)
def test_a_column_that_does_not_fit_is_not_proposed(name, values):
    assert proposed([name], *([value] for value in values)) == {}


@pytest.mark.parametrize("name", ["BI-RADS", "BI-RADS assessment"])
def test_a_birads_category_is_no_density(name):
    assert proposed([name], [4], [4], [3]) == {}


def test_an_id_must_be_of_its_own_in_each_row():
    assert proposed(["Subject"], ["A"], ["A"]) == {}
    assert proposed(["Subject"], ["A"], ["B"]) == {"case_id": "Subject"}


def test_one_column_is_not_proposed_twice_and_rivals_are_named():
    found = propose_columns({0: "Age at MRI", 1: "Age at surgery"}, [[41, 42]], ["age"])
    assert [one.column for one in found] == ["Age at MRI"]
    assert found[0].reason.endswith("(other candidates: Age at surgery)")


def test_nothing_of_a_proposal_is_read_until_it_is_confirmed(foreign, tmp_path):
    with pytest.raises(FormatError, match="case_id"):
        read_clinical(foreign)
    seen = overview_job(foreign)
    write_columns(seen.confirmed(ColumnChoice()), tmp_path / "columns.json")
    cohort = read_clinical(foreign, read_columns(tmp_path / "columns.json"))
    assert [record.age for record in cohort.records] == [27, 84, None]
    assert dict(cohort.coverage())["pcr"] == 3
    assert cohort.records[0].other == {"Follow-up (months)": 12}


def test_a_fixed_column_counts_instead_of_the_one_of_that_name(tmp_path):
    (tmp_path / "t.csv").write_text("patient_id,age,Age at MRI\nA,41,50\n")
    choice = ColumnChoice((("age", "age at mri"),))
    (record,) = read_clinical(tmp_path / "t.csv", choice).records
    assert (record.age, dict(record.other)) == (50, {"age": 41})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "not an object"),
        ('{"weight": "kg"}', "'weight' is not one of the fields"),
        ('{"age": 3}', "a column name or null"),
        ('{"age": " "}', "a column name or null"),
        ('{"case_id": null}', "case_id has no column, although it is required"),
        ("{", "columns.json"),
        ("[" * 100 + "]" * 100, "deep"),
    ],
)
def test_a_columns_file_that_is_none_is_refused_by_name(tmp_path, content, said):
    (tmp_path / "columns.json").write_text(content)
    with pytest.raises(FormatError, match=said):
        read_columns(tmp_path / "columns.json")


def test_a_fixed_column_that_the_table_lacks_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("patient_id,age\nA,41\n")
    with pytest.raises(FormatError, match=r"'Alter'.*row 1, but found 'patient_id', 'age'"):
        read_clinical(tmp_path / "t.csv", ColumnChoice((("age", "Alter"),)))


def test_a_needed_field_without_any_value_is_an_error_that_shows_the_proposal(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("patient_id,Age (y),menopause,breast_density\nA,41,pre,b\nB,42,post,c\n")
    with pytest.raises(FormatError, match=r'(?s)values of age for fairness.*"Age \(y\)" as age'):
        read_table(path)
    absent = ColumnChoice((("age", None),))
    assert dict(read_table(path, absent).coverage())["age"] == 0
    fixed = ColumnChoice((("age", "Age (y)"),))
    assert dict(read_table(path, fixed).coverage())["age"] == 2


def test_written_columns_name_only_what_is_known(tmp_path):
    (tmp_path / "t.csv").write_text("patient_id,age\nA,41\n")
    seen = overview_job(tmp_path / "t.csv")
    write_columns(seen.confirmed(ColumnChoice()), tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == {"case_id": "patient_id", "age": "age"}


def test_no_column_is_lost_to_the_number_of_another(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("patient_id,size (2),size,size,ki67 (%),ki67\nA,1,2,3,4,5\n")
    (record,) = read_clinical(path).records
    values = {name: str(value) for name, value in dict(record.other).items()}
    assert values == {"size (2)": "1", "size": "2", "size (3)": "3", "ki67 (%)": "4", "ki67": "5"}
