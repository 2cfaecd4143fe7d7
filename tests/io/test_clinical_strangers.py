"""Clinical tables as spreadsheet programs and other countries leave them: nothing goes unsaid."""

import shutil
import zipfile

import openpyxl
import pytest

from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.clinical.overview import overview_job
from napari_mamamia.services.case.data_set import open_data_set


def table(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return read_clinical(path)


def book(tmp_path, **sheets):
    """Return a workbook of sheets with rows; a name that ends with _hidden is hidden."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        sheet.sheet_state = "hidden" if name.endswith("_hidden") else "visible"
        for row in rows:
            sheet.append(row)
    made.save(tmp_path / "table.xlsx")
    return made


HEAD = ("patient_id", "age")


@pytest.mark.parametrize(
    ("cell", "times"),
    [
        ('"0;60,5;121"', (0, 60.5, 121)),  # was 0, 60, 5 and 121: four phases, or a refusal
        ('"0;60,70;121,0"', (0, 60.7, 121)),
        ('"0 60,7 121"', (0, 60.7, 121)),
        ('"0,60,121"', (0, 60, 121)),
        ('"[0, 60.5, 121]"', (0, 60.5, 121)),
        ("36930", (0,)),
    ],
)
def test_a_comma_between_semicolons_or_blanks_is_a_decimal_one(tmp_path, cell, times):
    found = table(tmp_path, f"patient_id,acquisition_times\nA,{cell}\n")
    assert [record.acquisition_times_s for record in found.records] == [times]


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("acquisition_times", "[0, 1,234]", "not every comma is followed by a blank"),
        ("acquisition_times", "101530,101700", "times of day"),
        ("acquisition_times", "0;1,234", "a decimal comma or a comma between thousands"),
        ("age", "1,234", "a decimal comma or a comma between thousands"),
        ("age", "1_0", "is not a number"),
        ("menopause", "pre/peri", "more than one of pre, peri and post"),
        ("menopause", "post or premenopausal", "more than one of pre, peri and post"),
        ("tumor_subtype", "#REF!", "formula error"),
        ("tumor_subtype", "Err:502", "formula error"),
        ("patient_id", "1.23E+12", "rounded"),
        ("patient_id", "#NAME?", "formula error"),
    ],
)
def test_what_may_mean_two_things_is_refused_by_its_cell(tmp_path, column, cell, said):
    cells = {"patient_id": "A", column: cell}
    row = ",".join(f'"{value}"' for value in cells.values())
    found = table(tmp_path, f"{','.join(cells)}\n{row}\n")
    assert found.records == ()
    (refused,) = found.refused
    assert said in refused.reason
    assert [one.value for one in refused.cells] == [cell]


def test_a_remark_behind_the_status_names_no_second_one(tmp_path):
    cell = "pre (<6 months since LMP AND no prior bilateral ovariectomy AND not on estrogen)"
    found = table(tmp_path, f"patient_id,menopause\nA,{cell}\n")
    assert [str(record.menopausal_status) for record in found.records] == ["pre"]


def test_signs_that_nobody_sees_are_no_part_of_an_id_or_a_header(tmp_path):
    rows = "\u00a0A_1\u00a0,45\nA_2\u200b,46\n\ufeffA_3,47\nA 4,48\n"
    found = table(tmp_path, f"patient\u200b_id,ag\u00ade\n{rows}")
    assert [record.case_id for record in found.records] == ["A_1", "A_2", "A_3", "A 4"]
    assert [record.age for record in found.records] == [45, 46, 47, 48]


@pytest.mark.parametrize(("cells", "is_odd"), [("0,1.5,3", True), ("0,9000,18000", True),
                                               ("0,60,120", False), ("55", False)])  # fmt: skip
def test_times_that_may_be_minutes_or_milliseconds_are_told(tmp_path, cells, is_odd):
    found = table(tmp_path, f'patient_id,acquisition_times\nA,"{cells}"\n')
    assert any("such as A, span less than 20 s or more" in note for note in found.notes) == is_odd


def test_a_hidden_sheet_is_read_only_where_no_other_has_cases_and_that_is_said(tmp_path):
    book(tmp_path, old_hidden=[HEAD, ("A", 99)], data=[HEAD, ("A", 45), ("B", 46)])
    found = read_clinical(tmp_path / "table.xlsx")
    assert [record.age for record in found.records] == [45, 46]
    assert found.notes == (
        "the sheet 'data' is read, but 'old_hidden' also has case ids and is not read",
    )
    book(tmp_path, only_hidden=[HEAD, ("A", 99)], notes=[("of", "2019")])
    assert read_clinical(tmp_path / "table.xlsx").notes == (
        "the sheet 'only_hidden' is hidden in the workbook",
    )


def test_a_second_sheet_with_cases_is_told_by_the_command_too(tmp_path):
    book(tmp_path, one=[HEAD, ("A", 45)], two=[HEAD, ("B", 46)], legend=[("age", "years")])
    seen = overview_job(tmp_path / "table.xlsx").cohort
    assert seen.notes == ("the sheet 'one' is read, but 'two' also has case ids and is not read",)


def test_rows_that_a_filter_hides_are_read_and_counted(tmp_path):
    made = book(tmp_path, data=[HEAD, ("A", 45), ("B", 46), ("C", 47)])
    for row in (2, 4):
        made["data"].row_dimensions[row].hidden = True
    made.save(tmp_path / "table.xlsx")
    found = read_clinical(tmp_path / "table.xlsx")
    assert len(found.records) == 3
    assert found.notes == ("hidden rows in the workbook that were also read: 2",)


def test_a_number_that_is_shown_with_zeros_or_letters_before_it_is_that_id(tmp_path):
    made = book(tmp_path, data=[HEAD, (1, 45), (2, 46), (3, 47), (-4, 48)])
    for row, form in enumerate(("0000", '"DUKE_"000', "0", "0000"), 2):
        made["data"].cell(row, 1).number_format = form
    made.save(tmp_path / "table.xlsx")
    ids = [record.case_id for record in read_clinical(tmp_path / "table.xlsx").records]
    assert ids == ["0001", "DUKE_002", "3", "-4"]


ODS = """<?xml version="1.0"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:automatic-styles>
 <style:style style:name="ta2" style:family="table"><style:table-properties table:display="false"/>
 </style:style></office:automatic-styles><office:body><office:spreadsheet>{}
 </office:spreadsheet></office:body></office:document-content>"""


def ods_sheet(name, ids, style="ta1", row=""):
    cells = "".join(
        f'<table:table-row{row}><table:table-cell office:value-type="float" office:value="{value}">'
        f"<text:p>{shown}</text:p></table:table-cell></table:table-row>"
        for value, shown in ids
    )
    return (
        f'<table:table table:name="{name}" table:style-name="{style}"><table:table-row>'
        '<table:table-cell office:value-type="string"><text:p>patient_id</text:p>'
        f"</table:table-cell></table:table-row>{cells}</table:table>"
    )


def test_an_ods_file_shows_its_hidden_sheets_rows_and_zeros_alike(tmp_path):
    """As LibreOffice writes them."""
    shown = ods_sheet("data", [(1, "0001"), (2, "DUKE_002"), (1234, "1,234"), (4, "4.00")],
                      row=' table:visibility="filter"')  # fmt: skip
    with zipfile.ZipFile(tmp_path / "table.ods", "w") as archive:
        text = ODS.format(ods_sheet("old", [(9, "9")], "ta2") + shown)
        archive.writestr("content.xml", text)
    found = read_clinical(tmp_path / "table.ods")
    assert [record.case_id for record in found.records] == ["0001", "DUKE_002", "1234", "4"]
    assert found.notes == (
        "the sheet 'data' is read, but 'old' also has case ids and is not read",
        "hidden rows in the workbook that were also read: 4",
    )


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("12", "leading zeros were lost"),
        ("XY", "like 'X', but the ids in the data set look like"),
    ],
)
def test_a_table_that_has_a_row_of_no_case_is_a_warning(small_data_set, tmp_path, ids, said):
    for number, folder in enumerate(sorted((small_data_set / "images").iterdir()), 1):
        for file in folder.iterdir():
            file.rename(file.with_name(file.name.replace(folder.name, f"000{number}")))
        folder.rename(folder.with_name(f"000{number}"))
    shutil.rmtree(small_data_set / "segmentations")  # of the former names
    path = small_data_set / "clinical_and_imaging_info.csv"
    for own in small_data_set.glob("clinical*"):
        own.unlink()
    path.write_text("patient_id,age\n" + "".join(f"{one},45\n" for one in ids))
    warnings = open_data_set(small_data_set, tmp_path / "workspace").warnings
    assert any(said in warning for warning in warnings), warnings
    path.write_text("patient_id,age\n0001,45\n")
    assert open_data_set(small_data_set, tmp_path / "workspace").warnings == ()


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ("Fallnummer;Alter;Brustdichte;pCR\nF1;45;b;ja\nF2;55,5;c;nein\n",
         ["Fallnummer", "Alter", "Brustdichte"]),
        ("id_paciente;edad;densidad mamaria;RCp\nF1;45;b;s\u00ed\nF2;55;c;no\n",
         ["id_paciente", "edad", "densidad mamaria", "RCp"]),
        ("Identifiant;\u00c2ge (ans);Densit\u00e9 mammaire;RCp\nF1;45;b;oui\nF2;55;c;non\n",
         ["Identifiant", "\u00c2ge (ans)", "Densit\u00e9 mammaire", "RCp"]),
        ("Patientennummer;Alter (Monate)\nF1;100\nF2;90\n", ["Patientennummer"]),
    ],
)  # fmt: skip
def test_columns_in_other_languages_are_proposed_but_not_in_another_unit(tmp_path, text, proposed):
    path = tmp_path / "table.csv"
    path.write_text(text, "utf-8")
    seen = overview_job(path)
    found = [one.column for one in seen.proposals]
    assert [name for name in found if name != "pCR"] == proposed
