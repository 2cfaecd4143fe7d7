"""Clinical tables as .ods: the same cases as in .xlsx, and no bomb."""

import zipfile
from pathlib import Path

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.clinical.clinical import read_clinical

NAMES = "".join(
    f' xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"'
    for n in ("office", "table", "text")
)
HEAD = "<table:table-row><X>patient_id</X><X>age</X><X>pcr</X></table:table-row>"


def ods(tmp_path, rows):
    """Write rows in which <X> is a text, <N> a number."""
    text = '<table:table-cell office:value-type="string"><text:p>'
    rows = rows.replace("<X>", text).replace("</X>", "</text:p></table:table-cell>")
    rows = rows.replace("<N>", '<table:table-cell office:value-type="float" office:value="')
    rows = rows.replace("</N>", '"/>').replace("<row>", "<table:table-row>")
    rows = rows.replace("</row>", "</table:table-row>")
    path = tmp_path / "t.ods"
    body = f'<office:spreadsheet><table:table table:name="s">{rows}</table:table>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        made.writestr("content.xml", f"<office:document-content{NAMES}><office:body>{body}"
                      "</office:spreadsheet></office:body></office:document-content>")  # fmt: skip
    return path


def test_texts_numbers_and_repeated_cells_are_read(tmp_path):
    rows = "<row><X>A</X><N>41.5</N><N>1</N></row><row><X>B</X>"
    rows += '<table:table-cell table:number-columns-repeated="1"/><N>0</N></row>'
    rows += '<table:table-row table:number-rows-repeated="1048570"><table:table-cell '
    rows += 'table:number-columns-repeated="16384"/></table:table-row>'
    cohort = read_clinical(ods(tmp_path, HEAD + rows))
    assert [(r.case_id, r.age, r.pcr) for r in cohort.records] == [
        ("A", 41.5, True),
        ("B", None, False),
    ]
    assert cohort.refused == ()


def test_merged_cells_and_formulas_without_result_refuse_their_rows(tmp_path):
    rows = '<row><X>A</X><table:table-cell office:value-type="float" office:value="41" '
    rows += 'table:number-rows-spanned="2"/><N>1</N></row>'
    rows += "<row><X>B</X><table:covered-table-cell/><N>0</N></row>"
    rows += '<row><X>C</X><table:table-cell table:formula="of:=1+1"/><N>0</N></row>'
    cohort = read_clinical(ods(tmp_path, HEAD + rows))
    assert [record.case_id for record in cohort.records] == ["A"]
    assert [(row.row, row.reason) for row in cohort.refused] == [
        (3, "B3 (age) is merged with B2"),
        (4, "B4 (age) is a formula without a stored result"),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        '<row><table:table-cell office:value-type="float" office:value="1" '
        'table:number-columns-repeated="2000000000"/></row>',
        '<table:table-row table:number-rows-repeated="2000000000"><X>A</X></table:table-row>',
        '<table:table-row table:number-rows-repeated="2000000000"/><row><X>A</X></row>',
        '<row><table:table-cell table:number-columns-repeated="2000000000"/><X>A</X></row>',
        '<table:table-row table:number-rows-repeated="-1"><X>A</X></table:table-row>',
        '<row><table:table-cell office:value-type="float" office:value="x"/></row>',
    ],
)
def test_a_bomb_of_repeated_cells_is_refused(tmp_path, rows):
    with pytest.raises(FormatError, match=r"t\.ods"):
        read_clinical(ods(tmp_path, HEAD + rows))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"plain"])
def test_a_damaged_ods_is_refused_by_name(tmp_path, content):
    (tmp_path / "t.ods").write_bytes(content)
    with pytest.raises(FormatError, match=r"t\.ods"):
        read_clinical(tmp_path / "t.ods")


# ---- files that other programs made

MADE = Path(__file__).parent / "ods"


def test_a_file_of_libreoffice_is_read_with_its_dates_blanks_titles_and_hidden_rows():
    """Converted by LibreOffice 7.4.7 from a workbook with what people leave in one."""
    found = read_clinical(MADE / "by_libreoffice.ods")
    told = {r.case_id: (r.age, r.menopausal_status, r.breast_density, r.pcr) for r in found.records}
    assert told == {
        "A_1": (51, "post", "b", True),
        "A_2": (42, "pre", "c", False),  # the age is the result of a formula
        "A_4": (45.5, "peri", None, False),
        "A_6": (38, "pre", "a", True),  # a hidden row; TRUE
        "A_7": (38, "pre", "a", True),
    }
    first, second = found.records[:2]
    assert first.acquisition_times_s == (0, 90, 180, 420)
    assert dict(first.other) == {"scan day": "2019-03-04", "two  spaces": "a  b"}
    assert second.other["two  spaces"] == "line\nbreak"
    assert found.notes == (
        "hidden rows in the workbook that were also read: 1",
        "the header is row 2; the rows above were skipped",
    )


def test_an_error_of_a_formula_of_libreoffice_refuses_its_row_and_is_no_missing_value():
    refused = read_clinical(MADE / "by_libreoffice.ods").refused
    assert [(row.row, row.reason) for row in refused] == [
        (5, "age '#DIV/0!' is not a number"),
        (7, "C7 (menopause) is merged with C6"),
    ]


def test_a_file_of_pandas_and_odfpy_is_read():
    """Written by pandas 3.1 with odfpy 1.4.1."""
    found = read_clinical(MADE / "by_pandas_odfpy.ods")
    assert [(r.case_id, r.age, r.pcr, r.other["note"]) for r in found.records] == [
        ("B_1", 51, True, "a  b"),
        ("B_2", None, False, "x\ny"),
        ("B_3", 40.5, None, "ü & <z>"),
    ]
    assert found.refused == ()
