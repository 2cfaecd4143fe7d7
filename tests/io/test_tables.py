import csv
import json
import math
import sys
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.errors import FormatError, MissingExtraError, SaveConflictError
from napari_mamamia.core.records import SCORE_COLUMNS, CaseScore, ScoreStatus
from napari_mamamia.io.tables.flat_tables import can_write_parquet, write_flat_table
from napari_mamamia.io.tables.spreadsheets import write_sheet
from napari_mamamia.io.tables.tables import read_case_scores, write_case_scores, write_json

NUMBERS = [f.name for f in fields(CaseScore) if f.type in (float, "float")]

scores = st.builds(
    CaseScore,
    case_id=st.text(),
    status=st.sampled_from(ScoreStatus),
    **{name: st.floats(allow_infinity=False) for name in NUMBERS},
    device=st.text(),
    tags=st.text(),
    profile=st.text(),
    warning=st.text(),
    reason=st.text(),
)


def same(a: CaseScore, b: CaseScore) -> bool:
    pairs = zip(astuple(a), astuple(b), strict=True)
    return all(x == y or (x != x and y != y) for x, y in pairs)


PUBLISHED = (
    "case_id,status,dsc,iou,hausdorff95_mm,hausdorff95_voxels,hausdorff_mm,assd_mm,nsd_1mm,"
    "nsd_2mm,norm_hd,volume_reference_mm3,volume_prediction_mm3,diameter_reference_mm,"
    "prediction_seconds,peak_memory_bytes,device,tags,profile,warning,reason"
)


def test_columns_are_the_fields_and_the_published_ones_keep_their_names_and_order(tmp_path):
    write_case_scores([], tmp_path / "s.csv")
    columns = (tmp_path / "s.csv").read_text().strip().split(",")
    assert columns == list(SCORE_COLUMNS)
    published = PUBLISHED.split(",")
    assert [name for name in columns if name in published] == published


def test_numbers_are_written_in_full_and_nan_as_an_empty_cell(tmp_path):
    row = CaseScore("A", ScoreStatus.PREDICTION_EMPTY, dsc=0.1 + 0.2, iou=math.inf)
    write_case_scores([row], tmp_path / "s.csv")
    columns, cells = csv.reader((tmp_path / "s.csv").read_text().splitlines())
    filled = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
    assert filled == {
        "case_id": "A",
        "status": "prediction_empty",
        "dsc": "0.30000000000000004",
        "profile": "clinical",
    }


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(scores, max_size=4))
def test_rows_come_back_bit_for_bit(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("scores") / "s.csv"
    write_case_scores(rows, path)
    back = read_case_scores(path)
    assert len(back) == len(rows)
    assert all(map(same, rows, back))


@pytest.mark.parametrize("case_id", ['a,"b"', "two\nlines", "cr\rhere", "crlf\r\n", " x "])
def test_awkward_ids_survive_and_other_programs_read_them(tmp_path, case_id):
    write_case_scores([CaseScore(case_id, ScoreStatus.OK, dsc=0.5)], tmp_path / "s.csv")
    assert read_case_scores(tmp_path / "s.csv")[0].case_id == case_id
    with (tmp_path / "s.csv").open(newline="", encoding="utf-8") as stream:
        assert list(csv.reader(stream))[1][0] == case_id


def test_further_columns_are_passed_over(tmp_path):
    row = CaseScore("A", ScoreStatus.OK, dsc=0.5)
    write_case_scores([row], tmp_path / "s.csv")
    lines = (tmp_path / "s.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text(f"{lines[0]},mine\n{lines[1]},x\n")
    assert same(read_case_scores(tmp_path / "t.csv")[0], row)


def test_a_missing_column_is_refused_with_file_and_column(tmp_path):
    (tmp_path / "s.csv").write_text("case_id,status\nA,ok\n")
    with pytest.raises(FormatError, match=r"s\.csv.*dsc, iou"):
        read_case_scores(tmp_path / "s.csv")


def test_what_an_older_table_has_no_column_for_is_unknown(tmp_path):
    (tmp_path / "s.csv").write_text(
        "case_id,status,dsc,iou,hausdorff95_mm,hausdorff95_voxels,hausdorff_mm,assd_mm,nsd_1mm,"
        "nsd_2mm,norm_hd,volume_reference_mm3,volume_prediction_mm3,profile,warning,reason\n"
        "A,ok,0.5,0.25,6,4,9,1.5,0.75,0.875,0.04,120,90,paper,small,\n"
    )
    row = read_case_scores(tmp_path / "s.csv")[0]
    known = (row.dsc, row.volume_prediction_mm3, row.profile, row.warning)
    assert known == (0.5, 90.0, "paper", "small")
    later = (row.diameter_reference_mm, row.prediction_seconds, row.peak_memory_bytes)
    assert all(map(math.isnan, later))
    assert (row.device, row.tags) == ("", "")


@pytest.mark.parametrize(("column", "cell"), [("dsc", "high"), ("status", "fine")])
def test_a_bad_cell_is_refused_with_file_line_and_column(tmp_path, column, cell):
    write_case_scores([CaseScore("A", ScoreStatus.OK)] * 2, tmp_path / "s.csv")
    lines = [line.split(",") for line in (tmp_path / "s.csv").read_text().splitlines()]
    lines[2][lines[0].index(column)] = cell
    (tmp_path / "s.csv").write_text("\n".join(",".join(line) for line in lines))
    with pytest.raises(FormatError, match=rf"column {column} of .*s\.csv, line 3.*{cell}"):
        read_case_scores(tmp_path / "s.csv")


def test_a_row_that_was_cut_is_refused(tmp_path):
    write_case_scores([CaseScore("A", ScoreStatus.OK)], tmp_path / "s.csv")
    text = (tmp_path / "s.csv").read_text()
    (tmp_path / "s.csv").write_text(text[: text.index("A,ok") + 6])
    with pytest.raises(FormatError, match="line 2"):
        read_case_scores(tmp_path / "s.csv")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\x01", b'"open quote'])
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path, content):
    (tmp_path / "s.csv").write_bytes(content)
    with pytest.raises(FormatError, match=r"s\.csv"):
        read_case_scores(tmp_path / "s.csv")


def test_a_missing_table_is_refused_by_name(tmp_path):
    with pytest.raises(FormatError, match=r"none\.csv"):
        read_case_scores(tmp_path / "none.csv")


def test_an_existing_table_is_kept_unless_told(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("old")
    with pytest.raises(SaveConflictError):
        write_case_scores([], path)
    assert path.read_text() == "old"
    write_case_scores([], path, overwrite=True)
    assert read_case_scores(path) == ()


@dataclass(frozen=True)
class Summary:
    n: int
    mean: float
    rows: tuple[CaseScore, ...]
    folder: Path


def test_json_takes_records_and_writes_null_for_nan(tmp_path):
    row = CaseScore("Fall ä", ScoreStatus.OK, dsc=0.1 + 0.2)
    summary = Summary(1, math.nan, (row,), Path("a/b"))
    write_json(
        {"summary": summary, ScoreStatus.OK: np.float32(0.5), 3: np.arange(3)}, tmp_path / "j"
    )
    content = json.loads((tmp_path / "j").read_text(encoding="utf-8"))
    assert content["summary"]["mean"] is None
    assert content["summary"]["rows"][0]["dsc"] == 0.1 + 0.2
    assert content["summary"]["rows"][0]["hausdorff_mm"] is None
    assert content["summary"]["rows"][0]["status"] == "ok"
    assert content["summary"]["folder"] == str(Path("a/b"))
    assert (content["ok"], content["3"]) == (0.5, [0, 1, 2])
    assert "Fall ä" in (tmp_path / "j").read_text(encoding="utf-8")


def test_json_of_infinity_is_null(tmp_path):
    write_json(
        [math.inf, np.float64("nan"), replace(CaseScore("A", ScoreStatus.OK)).dsc], tmp_path / "j"
    )
    assert json.loads((tmp_path / "j").read_text()) == [None, None, None]


def test_json_does_not_replace_a_file_unless_told(tmp_path):
    write_json({}, tmp_path / "j")
    with pytest.raises(SaveConflictError):
        write_json([], tmp_path / "j")
    write_json([], tmp_path / "j", overwrite=True)
    assert json.loads((tmp_path / "j").read_text()) == []


def test_json_of_anything_else_is_a_type_error(tmp_path):
    with pytest.raises(TypeError, match="object"):
        write_json({"x": object()}, tmp_path / "j")
    assert list(tmp_path.iterdir()) == []


def test_xlsx_and_parquet_hold_the_columns_and_numbers_of_the_csv(tmp_path):
    rows = [
        CaseScore("007", ScoreStatus.OK, dsc=0.1 + 0.2, norm_hd=math.inf, warning="=1+1 \x01"),
        CaseScore("B", ScoreStatus.UNREADABLE, reason="ä\nb"),
    ]
    for suffix in ("csv", "xlsx", "parquet"):
        write_case_scores(rows, tmp_path / f"s.{suffix}")
    frames = [pd.read_excel(tmp_path / "s.xlsx", dtype={"case_id": str})]
    frames.append(pd.read_parquet(tmp_path / "s.parquet"))
    for frame in frames:
        assert list(frame.columns) == list(SCORE_COLUMNS)
        assert list(frame.case_id) == ["007", "B"]
        assert list(frame.status) == ["ok", "unreadable"]
        assert frame.dsc[0] == pytest.approx(0.1 + 0.2, abs=1e-15)
        assert frame.norm_hd.isna().all()
        assert frame.reason[1] == "ä\nb"
    assert [frame.warning[0] for frame in frames] == ["=1+1 ?", "=1+1 \x01"]
    assert frames[1].dsc[0] == 0.1 + 0.2


def test_parquet_of_no_case_has_its_columns(tmp_path):
    write_case_scores([], tmp_path / "s.parquet")
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert (len(frame), str(frame.dsc.dtype)) == (0, "float64")


def test_a_table_of_another_kind_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"\.csv, \.xlsx or \.parquet"):
        write_case_scores([], tmp_path / "s.txt")


def test_equal_sheets_give_equal_bytes_and_every_type_of_cell_comes_back(tmp_path):
    head = ["id", "age", "share", "is_bilateral", "note"]
    rows = [head, ["0007", 51, 0.1, True, "=1+1"], ["B", None, float("nan"), False, ""]]
    for name in ("one.xlsx", "two.xlsx"):
        write_sheet(rows, tmp_path / name, name="dataset_info")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    sheet = openpyxl.load_workbook(tmp_path / "one.xlsx")["dataset_info"]
    back = [list(row) for row in sheet.iter_rows(values_only=True)]
    assert back == [head, ["0007", 51, 0.1, True, "=1+1"], ["B", None, None, False, None]]
    assert [type(value) for value in back[1]] == [str, int, float, bool, str]
    assert sheet["E2"].data_type != "f"  # a text that starts with = is no formula


@pytest.mark.parametrize("sign", ["\x00", "\x0b", "\x1f", "\ufffe"])
def test_a_text_that_no_sheet_can_hold_is_refused_and_nothing_is_written(tmp_path, sign):
    with pytest.raises(FormatError, match="without control characters"):
        write_sheet([["id"], [f"A{sign}"]], tmp_path / "x.xlsx", name="dataset_info")
    assert [*tmp_path.iterdir()] == []


def test_without_pyarrow_a_parquet_table_names_the_pip_command_and_others_are_written(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert not can_write_parquet()
    with pytest.raises(MissingExtraError, match=r'pip install "napari-mamamia\[parquet\]"'):
        write_case_scores([], tmp_path / "s.parquet")
    with pytest.raises(MissingExtraError, match="parquet"):
        write_flat_table(["id"], [("A",)], 1, tmp_path / "t.parquet")
    write_case_scores([], tmp_path / "s.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["s.csv"]
