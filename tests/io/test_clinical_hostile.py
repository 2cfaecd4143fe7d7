"""Clinical tables that are not ours: whatever they hide is read or refused by name, never lost."""

import zipfile

import openpyxl
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.data_set.score_files import read_response_table, read_score_table


def text_table(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    return path


def workbook(tmp_path, rows, *merged):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for cells in merged:
        sheet.merge_cells(cells)
    book.save(tmp_path / "table.xlsx")
    return tmp_path / "table.xlsx"


def edited(path, *changes):
    """Return a copy of a workbook with changes in the XML of its first sheet."""
    made = path.with_name("edited.xlsx")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for part in old.infolist():
            data = old.read(part)
            if part.filename.endswith("sheet1.xml"):
                for before, after in changes:
                    data = data.replace(before, after)
            new.writestr(part, data)
    return made


def ages(cohort):
    return {record.case_id: record.age for record in cohort.records}


def refused(cohort):
    return [(row.row, row.reason) for row in cohort.refused]


# ---- title rows


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_header_is_found_below_title_rows_and_rows_keep_their_numbers(tmp_path, separator):
    text = "Registry of 2024, all sites\n\npatient_id;age\nA;41\nB;x\n".replace(";", separator)
    cohort = read_clinical(text_table(tmp_path, text))
    assert ages(cohort) == {"A": 41}
    assert refused(cohort) == [(5, "age 'x' is not a number")]
    assert cohort.notes == ("the header is row 3; the rows above were skipped",)


def test_a_header_below_titles_is_found_in_a_sheet(tmp_path):
    rows = [["Registry"], [], ["as of", 2024], ["Patient ID", "Age"], ["A", 41]]
    assert ages(read_clinical(workbook(tmp_path, rows, "A1:D1"))) == {"A": 41}


def test_a_header_too_far_down_is_not_looked_for(tmp_path):
    rows = [["title"]] * 31 + [["patient_id", "age"], ["A", 41]]
    with pytest.raises(FormatError, match="patient_id or case_id"):
        read_clinical(workbook(tmp_path, rows))


def test_a_list_of_fields_with_their_meaning_is_no_table_of_cases(tmp_path):
    text = "field,meaning\npatient_id,the id\nage,in years\n"
    with pytest.raises(FormatError, match="patient_id or case_id"):
        read_clinical(text_table(tmp_path, text))


# ---- encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_text_of_utf8_is_read_without_a_word(tmp_path, encoding):
    cohort = read_clinical(text_table(tmp_path, "patient_id,age\nMüller,41\n", encoding))
    assert (ages(cohort), cohort.notes) == ({"Müller": 41}, ())


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-16", "UTF-16"), ("latin-1", "Windows-1252"), ("cp1252", "1252")]
)
def test_another_encoding_is_read_and_said(tmp_path, encoding, said):
    cohort = read_clinical(text_table(tmp_path, "patient_id,age\nMüller,41\n", encoding))
    assert ages(cohort) == {"Müller": 41}
    assert said in cohort.notes[0]


def test_binary_files_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"patient_id\n\x00\xff\xfe\x01\n")
    with pytest.raises(FormatError, match=r"t\.csv"):
        read_clinical(tmp_path / "t.csv")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_its_mark_is_read_and_said(tmp_path, encoding):
    cohort = read_clinical(text_table(tmp_path, "patient_id,age\nMüller,41\n", encoding))
    assert (ages(cohort), cohort.notes) == ({"Müller": 41}, ("its text is UTF-16",))


def test_a_score_table_in_another_encoding_is_read_and_said(tmp_path):
    path = text_table(tmp_path, "case_id,dsc,norm_hd\nMüller,1,0\n", "cp1252")
    read = read_score_table(path)
    assert [row.case_id for row in read.rows] == ["Müller"]
    assert "Windows-1252" in read.notes[0]


# ---- lost values


@pytest.mark.parametrize("row", ["A,41", "A,41,1,0", "A,41,[0, 90],1"])
def test_a_text_row_of_another_length_is_refused(tmp_path, row):
    cohort = read_clinical(text_table(tmp_path, f"patient_id,age,pcr\n{row}\nB,42,1\n"))
    assert ages(cohort) == {"B": 42}
    ((number, reason),) = refused(cohort)
    assert (number, reason) == (2, f"it has {len(row.split(','))} cells, but the header has 3")


def test_empty_cells_beyond_the_header_do_no_harm(tmp_path):
    assert ages(read_clinical(text_table(tmp_path, "patient_id,age\nA,41,,\n"))) == {"A": 41}


def test_merged_cells_over_data_refuse_the_rows_that_lost_their_value(tmp_path):
    rows = [["patient_id", "age", "pcr"], ["A", 41, 0], ["B", None, 1], ["C", 43, None]]
    cohort = read_clinical(workbook(tmp_path, rows, "B2:B3", "B4:C4"))
    assert ages(cohort) == {"A": 41}
    assert refused(cohort) == [
        (3, "B3 (age) is merged with B2"),
        (4, "C4 (pcr) is merged with B4"),
    ]


def test_merged_cells_without_a_value_lose_none(tmp_path):
    rows = [["patient_id", "age", "pcr"], ["A", None, None], ["B", 42, 1]]
    assert ages(read_clinical(workbook(tmp_path, rows, "B2:C2"))) == {"A": None, "B": 42}


def test_a_formula_without_a_result_refuses_its_row_by_the_cells(tmp_path):
    rows = [["patient_id", "age", "pcr"], ["A", "=40+1", "=1"], ["B", 42, 1], ["=C4", "=1", "=0"]]
    cohort = read_clinical(workbook(tmp_path, rows))
    assert ages(cohort) == {"B": 42}
    first, last = cohort.refused
    assert (first.row, last.row) == (2, 4)
    assert [(cell.cell, cell.column) for cell in first.cells] == [("B2", "age"), ("C2", "pcr")]
    assert first.reason.startswith("B2 (age) is a formula without a stored result")


def test_a_formula_with_a_result_is_its_result(tmp_path):
    path = workbook(tmp_path, [["patient_id", "age", "site"], ["A", "=40+1", "=B2"]])
    parts = [
        (b"<f>40+1</f><v></v>", b"<f>40+1</f><v>41</v>"),
        (b"<f>40+1</f><v />", b"<f>40+1</f><v>41</v>"),
        (b'<c r="C2">', b'<c r="C2" t="str">'),  # an empty text
    ]
    cohort = read_clinical(edited(path, *parts))
    assert (ages(cohort), cohort.refused) == ({"A": 41}, ())


def test_score_tables_refuse_the_same_losses(tmp_path):
    rows = [["case_id", "dsc", "norm_hd"], ["A", "=1/2", 0.5], ["B", 0.5, 0.25], ["C", 0.5, None]]
    found = read_score_table(workbook(tmp_path, rows, "B4:C4"))
    assert [row.case_id for row in found.rows] == ["B"]
    assert "B2 is a formula" in found.failures[0].reason
    assert "C4 is merged" in found.failures[1].reason
    short = read_response_table(text_table(tmp_path, "case_id,pcr,score\nA,1\nB,1,0.5\n"))
    assert [row.case_id for row in short.rows] == ["B"]
    assert "2 cells, but the header has 3" in short.failures[0].reason


def test_merged_cells_over_a_whole_sheet_are_bounded(tmp_path):
    rows = [["patient_id", "age"], ["A", 41], ["B", None]]
    path = workbook(tmp_path, rows, "B2:B3")
    cohort = read_clinical(edited(path, (b"B2:B3", b"B2:XFD1048576")))
    assert refused(cohort) == [(3, "B3 (age) is merged with B2")]


# ---- columns and ids


@pytest.mark.parametrize("names", ["age,age", "age,Age", "AGE , age"])
def test_a_second_column_of_the_same_name_must_agree(tmp_path, names):
    cohort = read_clinical(text_table(tmp_path, f"patient_id,{names}\nA,41,42\nB,43,43\nC,,44\n"))
    assert ages(cohort) == {"B": 43, "C": 44}
    ((row, reason),) = refused(cohort)
    assert row == 2
    assert reason.endswith("disagree: 41.0 and 42.0")


def test_two_columns_of_ids_with_one_name_must_agree(tmp_path):
    cohort = read_clinical(text_table(tmp_path, "case_id,case_id,age\nA,B,41\nC,C,42\n"))
    assert ages(cohort) == {"C": 42}


def test_ids_that_differ_in_letter_case_only_are_refused(tmp_path):
    cohort = read_clinical(text_table(tmp_path, "patient_id,age\nDUKE_1,41\nduke_1,42\n"))
    assert ages(cohort) == {"DUKE_1": 41}
    ((row, reason),) = refused(cohort)
    assert row == 3
    assert "is already in row 2 as DUKE_1" in reason


def test_every_rejected_cell_of_a_row_is_listed_with_its_value(tmp_path):
    text = 'patient_id,age,pcr,acquisition_times\nA,150,maybe,"[0, 1e9]"\n'
    (row,) = read_clinical(text_table(tmp_path, text)).refused
    assert [(cell.cell, cell.column, cell.value) for cell in row.cells] == [
        ("B2", "age", "150"),
        ("C2", "pcr", "maybe"),
        ("D2", "acquisition_times", "[0, 1e9]"),
    ]
    assert all(cell.reason in row.reason for cell in row.cells)
