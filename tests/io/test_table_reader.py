"""One reader for every table: however a program or a country writes it, the same numbers.

The expected values are those that the tables below were written from.
"""

import math
import zipfile
from fractions import Fraction

import openpyxl
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.ranking_tables import read_case_columns, read_value_tables
from napari_mamamia.features.classifiers.io.detection_files import (
    DetectionCases,
    read_detection_cases,
    read_lesions,
    read_predicted_boxes,
)
from napari_mamamia.features.review.io.quality_files import read_signs
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.data_set.case_list import read_case_list
from napari_mamamia.io.data_set.named_columns import read_named_columns
from napari_mamamia.io.data_set.score_files import read_response_table, read_score_table
from napari_mamamia.io.tables.cells import NumberStyle, parse_label, parse_number, style_of
from napari_mamamia.io.tables.headers import is_summary, is_unit_row
from napari_mamamia.io.tables.tables import read_case_scores

IDS = ("C1", "C2", "C3", "C4")
FIRST = (0.5, 0.25, 0.75, 0.875)
SECOND = (0.125, 0.0, 1.0, 0.5)
LABELS = (1, 0, 1, 0)
BOX = ("x1", "x2", "y1", "y2", "z1", "z2")


def of_scores(path):
    rows = read_score_table(path).rows
    return [row.case_id for row in rows], [row.dsc for row in rows], [row.norm_hd for row in rows]


def of_responses(path):
    rows = read_response_table(path).rows
    return [row.case_id for row in rows], [int(row.pcr) for row in rows], [r.score for r in rows]


def of_names(path):
    read = read_named_columns(path, ("id", "m", "k"))
    return list(read.ids("id")[0]), read.numbers("m")[0].tolist(), read.numbers("k")[0].tolist()


def of_all_names(path):
    read = read_named_columns(path)
    return list(read.texts("id")), read.numbers("m")[0].tolist(), read.numbers("k")[0].tolist()


def of_wide(path):
    (table,) = read_value_tables(path).tables
    return list(table.cases), table.values[:, 0].tolist(), table.values[:, 1].tolist()


def of_each(path):
    read = read_case_columns(path, ("dsc", "nsd"))
    return list(read.cases), read.values[:, 0].tolist(), read.values[:, 1].tolist()


def of_signs(path):
    signs = read_signs(path)
    doubts = [sign.doubt for sign in signs.values()]
    return list(signs), doubts, [sign.missed_lesions for sign in signs.values()]


def of_boxes(path):
    read = read_predicted_boxes(path, DetectionCases(IDS))
    return [IDS[at] for at in read.cases], read.edges_mm[:, 0].tolist(), read.scores.tolist()


READERS = {
    "score-table": (of_scores, ("case_id", "dsc", "norm_hd"), FIRST),
    "score-pcr": (of_responses, ("case_id", "pcr", "score"), LABELS),
    "score-classifier": (of_names, ("id", "m", "k"), FIRST),
    "audit": (of_all_names, ("id", "m", "k"), FIRST),
    "rank": (of_wide, ("case", "A", "B"), FIRST),
    "rank each": (of_each, ("case_id", "dsc", "nsd"), FIRST),
    "signs": (of_signs, ("case_id", "doubt", "missed_lesions"), FIRST),
    "boxes": (of_boxes, ("case_id", "x1", "score", *BOX[1:]), FIRST),
}


def rows_of(head, values):
    more = [(2.5, 0.25, 1.5, 0.25, 1.5)] * 4 if "x2" in head else [()] * 4
    cells = zip(IDS, values, SECOND, more, strict=True)
    return [list(head), *([name, first, second, *rest] for name, first, second, rest in cells)]


def text_of(rows, separator=",", comma="."):
    lines = []
    for row in rows:
        cells = [str(c).replace(".", comma) if isinstance(c, float) else str(c) for c in row]
        lines.append(separator.join(f'"{c}"' if separator in c else c for c in cells))
    return "\n".join(lines) + "\n"


def joined(rows, extra, at=None):
    at = len(rows) if at is None else at
    return text_of([*rows[:at], *extra, *rows[at:]])


def blank(rows, first=""):
    return [first, *[""] * (len(rows[0]) - 1)]


WRITINGS = {
    "semicolons and decimal commas": lambda rows: text_of(rows, ";", ","),
    "Excel's separator line": lambda rows: "sep=;\n" + text_of(rows, ";", ","),
    "the line with a mark and quotes": lambda rows: '\ufeff"sep=;"\r\n' + text_of(rows, ";", ","),
    "tabs": lambda rows: text_of(rows, "\t"),
    "pipes": lambda rows: text_of(rows, "|"),
    "commas in quotes": lambda rows: text_of(rows, ",", ","),
    "UTF-16": lambda rows: text_of(rows, "\t").encode("utf-16"),
    "UTF-16 big end first": lambda rows: b"\xfe\xff" + text_of(rows).encode("utf-16-be"),
    "UTF-16 without a mark": lambda rows: text_of(rows, ";", ",").encode("utf-16-le"),
    "Latin-1 in a further column": lambda rows: text_of(
        [[*row, text] for row, text in zip(rows, ("Gr\xf6\xdfe", *"\xe4\xf6\xfc\xdf"), strict=True)]
    ).encode("latin-1"),
    "old line ends": lambda rows: text_of(rows).replace("\n", "\r"),
    "comments": lambda rows: "# ours, 2024\n" + joined(rows, [["# second batch, of May"]], 3),
    "titles": lambda rows: "Results of the model\n\nMay 2024\n" + text_of(rows),
    "a header with a hash": lambda rows: "#" + text_of(rows),
    "a line break in quotes": lambda rows: text_of(
        [[*row, text] for row, text in zip(rows, ("note", *['"two\nlines"'] * 4), strict=True)]
    ),
    "empty columns and rows": lambda rows: (
        "\n".join(line + ",," for line in text_of(rows).splitlines()) + "\n,,,,\n\n  \n"
    ),
    "a header without its empty columns": lambda rows: text_of(rows).replace("\n", ",,\n", 1),
    "pandas' index": lambda rows: text_of(
        [[at, *row] for at, row in zip(("", 0, 1, 2, 3), rows, strict=True)]
    ),
    "the header once more": lambda rows: joined(rows, [rows[0]], 3),
    "summaries": lambda rows: joined(
        rows, [["mean", *[0.5] * (len(rows[0]) - 1)], ["Std. Dev.", *[0.25] * (len(rows[0]) - 1)]]
    ),
    "a summary beside its id": lambda rows: joined(
        [["", *rows[0]], *([at, *row] for at, row in enumerate(rows[1:]))],
        [["Mittelwert", "", *[0.5] * (len(rows[0]) - 1)]],
    ),
    "text marks of Excel": lambda rows: text_of(
        [rows[0], *([row[0], *(f"'{cell}" for cell in row[1:])] for row in rows[1:])]
    ),
    "blanks nobody sees": lambda rows: text_of(
        [[f"\u00a0{cell}\u200b" for cell in row] for row in rows]
    ),
    "two rows of header": lambda rows: text_of([["", *["values"] * (len(rows[0]) - 1)], *rows]),
    "exponents": lambda rows: text_of(
        [[f"{c:.9e}" if isinstance(c, float) else c for c in row] for row in rows]
    ),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writing", WRITINGS)
def test_every_reader_reads_every_writing(tmp_path, reader, writing):
    read, head, values = READERS[reader]
    if reader == "rank" and writing in ("Latin-1 in a further column", "a line break in quotes"):
        pytest.skip("every further column is an algorithm: texts are refused")
    if reader == "signs" and "summar" in writing:
        pytest.skip("a queue has nowhere to name it: refused, below")
    if reader == "score-classifier" and writing == "a header with a hash":
        pytest.skip("its user names the columns as they stand")
    if reader == "audit" and writing in ("a header with a hash", "two rows of header"):
        pytest.skip("every column is taken as it is named")
    text = WRITINGS[writing](rows_of(head, values))
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    ids, first, second = read(path)
    assert (ids, first, second) == (list(IDS), list(values), list(SECOND))


@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("rank", "audit")])
def test_ids_may_be_an_index_without_a_name(tmp_path, reader):
    read, head, values = READERS[reader]
    if reader == "score-classifier":
        pytest.skip("its user names the column")
    path = tmp_path / "t.csv"
    path.write_text(text_of(rows_of(("", *head[1:]), values)))
    assert read(path)[0] == list(IDS)
    path.write_text(text_of([[*row] for row in rows_of(("", *head[1:]), values)]).replace("C", ""))
    with pytest.raises(FormatError, match="case"):
        read(path)


def test_other_tables_of_cases_are_read_so_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=;\n# ours\ncase_id;centre\nC1;X\nC2;Y\n")
    assert read_detection_cases(path).ids == ("C1", "C2")
    assert read_case_list(path).case_ids == ("C1", "C2")
    path.write_text("sep=;\n# ours\npatient_id;age;pcr\nC1;41,5;non-pCR\nmean;41,5;\n")
    cohort = read_clinical(path)
    assert [(one.case_id, one.age, one.pcr) for one in cohort.records] == [("C1", 41.5, False)]
    (refused,) = cohort.refused
    assert (refused.row, "'mean' looks like a summary row" in refused.reason) == (5, True)
    path.write_text("case_id;x1;x2;y1;y2;z1;z2\n;[mm];[mm];[mm];[mm];[mm];[mm]\nC1;0,5;2;0;1;0;1\n")
    assert read_lesions(path, DetectionCases(IDS)).edges_mm[0].tolist() == [0.5, 2, 0, 1, 0, 1]


def test_what_a_reader_cannot_say_refuses_the_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("case_id\nC1\nC2\ntotal\n")
    with pytest.raises(FormatError, match=r"row 4 \(total\) is left out"):
        read_case_list(path)


SUMMARIES = """mean, Mean \u00b1 SD, MEAN (n=30), average, AVERAGE, Avg., median, std, Std. Dev.
SD, min
Max, sum, total, Total:, overall, Overall mean, 95% CI, 25%, 50 %, Mittelwert, Durchschnitt, Gesamt
Mittelwert \u00b1 Standardabweichung, Summe, Moyenne, m\u00e9diane, \u00e9cart-type, Media
desviaci\u00f3n est\u00e1ndar, gemiddelde, all cases, mean_dice, -- mean --
\u00d8 Mittelwert, N, count
\u5e73\u5747\u503c"""
CASES = """MEAN_001, DUKE_001, Meanwell, SD-12, total hip 3, maxi, Summers, P95, Q1, 1001
Anna Median, A
X_min_2, Medina"""


@pytest.mark.parametrize("word", SUMMARIES.replace("\n", ", ").split(", "))
def test_a_summary_is_known_by_its_words(word):
    assert is_summary(word)


@pytest.mark.parametrize("name", ["", *CASES.replace("\n", ", ").split(", ")])
def test_an_id_that_only_looks_like_a_summary_is_a_case(name):
    assert not is_summary(name)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("46.1%", 0.461),
        ("46,1 %", 0.461),
        ("0,83", 0.83),
        (",5", 0.5),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("1,234,567", 1234567),
        ("1.234.567", 1234567),
        ("1 234,5", 1234.5),
        ("1\u202f234", 1234),
        ("1'234.5", 1234.5),
        ("\u22120.5", -0.5),
        ("7.5e-1", 0.75),
        ("'0.5", 0.5),
        (3, 3),
    ],
)
def test_a_number_is_read_as_its_country_writes_it(cell, number):
    assert parse_number(cell) == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize(
    "cell", ["<0.01", "0.5 mm", "1_000", "inf", "1,23,4", "0x1", "1.2.3", True]
)
def test_what_is_no_number_is_none(cell):
    with pytest.raises(ValueError, match="number"):
        parse_number(cell)


@pytest.mark.parametrize(
    ("cells", "style"),
    [
        (("1,234", "0,5"), NumberStyle("decimal", "decimal")),
        (("1,234", "1,234,567"), NumberStyle("thousands", "decimal")),
        (("1,234", "12,345.5"), NumberStyle("thousands", "decimal")),
        (("1,234", "2,345"), NumberStyle("", "decimal")),
        (("1,234", "0,5", "0.5"), NumberStyle("", "decimal")),
        (("1.234", "0,5"), NumberStyle("decimal", "")),
        (("1.234", "1.234,5"), NumberStyle("decimal", "thousands")),
        (("1.234", "0.5"), NumberStyle("", "decimal")),
        (("1.234",), NumberStyle("", "decimal")),
    ],
)
def test_all_cells_of_a_column_tell_what_a_comma_means(cells, style):
    assert style_of(cells) == style


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (("1,234", "2,345", "3"), "decimal comma or a comma between thousands"),
        (("46.1%", "0.5", "50%"), "row 2 has '46.1%' and row 3 has '0.5'"),
        (("83.2", "76", "91"), "its values range from 76 to 91"),
    ],
)
def test_a_column_that_can_mean_two_things_is_refused_by_its_name(tmp_path, column, said):
    path = tmp_path / "t.csv"
    rows = "\n".join(f"C{k};{cell};0.1" for k, cell in enumerate(column))
    path.write_text(f"case_id;dsc;norm_hd\n{rows}\n")
    with pytest.raises(FormatError, match=f"column dsc .*{said}"):
        read_score_table(path)


def test_a_percent_sign_is_a_hundredth_in_every_score(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("case_id,pcr,Probability\nC1,pCR,46.1%\nC2,non-pCR,0%\nC3,no,100 %\n")
    rows = read_response_table(path).rows
    assert [(row.pcr, row.score) for row in rows] == [(True, 0.461), (False, 0.0), (False, 1.0)]
    path.write_text("case_id,dsc [%],norm_hd\nC1,46.1,0.5\n")
    assert read_score_table(path).rows[0].dsc == pytest.approx(0.461, rel=1e-15)


def test_another_unit_than_expected_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("case_id,x1 (cm),x2,y1,y2,z1,z2\nC1,0,1,0,1,0,1\n")
    with pytest.raises(FormatError, match="its unit is cm: convert the column to mm"):
        read_lesions(path, DetectionCases(IDS))
    path.write_text('patient_id,age,acquisition_times\n,years,min\nC1,41,"0,1,2"\n')
    with pytest.raises(FormatError, match="gives min for acquisition_times"):
        read_clinical(path)


def test_where_no_row_is_usable_there_is_no_number(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("case_id,dsc,norm_hd\nC1,good,0.1\nC2,<0.5,0.1\n")
    with pytest.raises(FormatError, match=r"none of the 2 rows can be used .*but it is 'good'"):
        read_score_table(path)
    path.write_text("case_id,pcr,score\nC1,perhaps,0.1\n")
    with pytest.raises(FormatError, match=r"the only row cannot be used .*pcr 'perhaps'"):
        read_response_table(path)


@pytest.mark.parametrize(
    ("texts", "label"),
    [
        ("pCR,yes,Y,TRUE,1,1.0,pos,Positive,Responder,ja,oui", True),
        ("non-pCR,non_pCR,no pCR,RD,no,N,FALSE,0,0.0,neg,Negative", False),
        ("Non-Responder,non responder,nein,non", False),
        (",NA,n.a.,-,NaN,nan,#N/A,k.A.", None),
    ],
)
def test_labels_have_many_names(texts, label):
    assert {parse_label(text) for text in texts.split(",")} == {label}


def test_a_label_that_is_none_of_them_is_refused():
    with pytest.raises(ValueError, match="must be 0 or 1, but it is 'partial response'"):
        parse_label("partial response")


def test_a_row_of_units_has_no_id():
    assert is_unit_row("", ["[mm]", "%", ""])
    assert not is_unit_row("C1", ["mm", "mm"])
    assert not is_unit_row("", ["0.5", "mm"])


# ---- the budget


def test_a_text_beyond_the_budget_is_refused_before_it_is_parted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("case_id,dsc,norm_hd\n")
    with path.open("r+b") as stream:
        stream.truncate(3 << 30)  # sparse: no disk is used
    for read in (read_score_table, read_clinical, read_case_list, read_case_scores):
        with pytest.raises(FormatError, match="larger than 128 MB, the limit"):
            read(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("C1," + "0" * (1 << 20), "characters, above the limit"),
        ("C1" + "," * 17_000, "cells, above"),
    ],
)
def test_a_line_beyond_the_budget_is_refused(tmp_path, line, said):
    path = tmp_path / "t.csv"
    path.write_text(f"case_id,dsc\n{line}\n")
    with pytest.raises(FormatError, match=said):
        read_score_table(path)


def test_more_rows_than_a_table_may_have_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("case_id,dsc\n" + "A,\n" * ((1 << 20) + 1))
    with pytest.raises(FormatError, match=r"limits: 1,048,576 rows"):
        read_score_table(path)


def rewritten(path, name, change):
    """Write a workbook of one case, a member of it changed and stored as it is."""
    book = openpyxl.Workbook()
    for row in (("case_id", "dsc"), ("C1", 0.5)):
        book.active.append(row)
    plain = path.with_name("plain.xlsx")
    book.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w") as new:
        members = {member: old.read(member) for member in old.namelist()}
        members[name] = change(members.get(name, b"<sst></sst>"))
        for member, content in members.items():
            new.writestr(member, content)


@pytest.mark.parametrize(
    ("name", "mark", "piece", "times", "said"),
    [
        ("xl/worksheets/sheet1.xml", b"</row>", b'<c r="A1"><v>1</v></c>', 900_000, "a row of"),
        ("xl/sharedStrings.xml", b"</sst>", b"<si><t>abcdefgh</t></si>", 3_000_000, "64 MB"),
        ("xl/worksheets/sheet1.xml", b"</row>", b"<!-- <row > -->", 1_200_000, "comments"),
    ],
)
def test_a_workbook_beyond_the_budget_is_refused(tmp_path, name, mark, piece, times, said):
    path = tmp_path / "t.xlsx"
    rewritten(path, name, lambda content: content.replace(mark, piece * times + mark, 1))
    with pytest.raises(FormatError, match=said):
        read_score_table(path)


def test_blanks_of_an_ods_cell_are_counted(tmp_path):
    path = tmp_path / "t.ods"
    cells = '<text:s text:c="1000000"/>' * 2
    text = (
        '<office:d xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
        '<table:table table:name="t"><table:table-row><table:table-cell office:value-type="string">'
        f"<text:p>case_id{cells}</text:p></table:table-cell></table:table-row></table:table></office:d>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.xml", text)
    with pytest.raises(FormatError, match="below the header"):
        read_detection_cases(path)


def test_the_mean_is_that_of_the_cases_alone(tmp_path):
    """The same numbers in fractions: a mean and a deviation below the cases count for nothing."""
    cells = ["0.5", "0.25", "0.875"]
    rows = [f"C{k},{cell},0.1" for k, cell in enumerate(cells)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["case_id,dsc,norm_hd", *rows, "mean,0.5417,0.1", "std,0.31,0"]))
    read = read_score_table(path)
    mean = sum(Fraction(row.dsc) for row in read.rows) / len(read.rows)
    assert math.isclose(mean, sum(map(Fraction, cells)) / 3)
    assert "rows 5 (mean), 6 (std) are left out as a summary" in read.notes[0]
