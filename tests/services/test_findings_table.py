"""Findings of a data set as a table: rows, codes and measures by hand."""

import csv
import sys

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.answers import Landmark, MarkedPoint, Side
from napari_mamamia.core.errors import MissingExtraError, SaveConflictError
from napari_mamamia.io.workspace.findings import FindingsChange, append_findings
from napari_mamamia.library import data_set as library
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.findings.findings_table import list_findings, write_findings

FORM = {"name": "breast-mri-2013", "edition": "2013", "sha256": "0" * 64}
# Files run x, y, z: 6 mm to the right, 5 mm to the front, 4 mm up; 50 voxels wide are 300 mm, the
# middle stands at x = -3 + 150 = 147 mm
AFFINE = np.diag([6.0, 5.0, 4.0, 1.0])
SHAPE = (50, 12, 10)


@pytest.fixture
def opened(tmp_path):
    for case_id in ("A_1", "A_2", "B_1"):
        for k in range(2):
            array = np.full(SHAPE, 100 + 50 * k, np.int16)
            path = tmp_path / "set" / "images" / case_id / f"{case_id}_{k:04d}.nii.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            nib.save(nib.Nifti1Image(array, AFFINE), path)
    return open_data_set(tmp_path / "set", tmp_path / "workspace")


def say(opened, case_id, answers, reader="Ana", **more):
    append_findings(opened.workspace.root, reader, case_id, FindingsChange(FORM, answers, **more))


def rows_of(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def draw(opened, case_id, reader="Ana"):
    array = np.zeros(SHAPE, np.uint8)
    array[40:42, 4:6, 6:8] = 1  # 8 voxels of 120 mm3, centre (243, 22.5, 26) mm: on the right
    path = opened.workspace.refined(reader, case_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array, AFFINE), path)


def test_a_row_for_each_lesion_with_terms_codes_and_what_is_said_of_case_and_breast(opened):
    say(opened, "B_1", {"fgt": "c"})
    answers = {
        "finding@1": "mass",
        "mass.shape@1": "irregular",
        "finding@2": "focus",
        "bpe": "mild",
        "assessment@right": "4",
        "associated@right": ["skin_invasion", "nipple_invasion"],
        "volume@1": {"number": "12.5", "unit": "mm3"},
    }
    say(opened, "A_1", answers, computed=("volume@1",), centres={"1": (1.0, 2.0, 3.0)})
    one, two, three = rows_of(list_findings(opened))
    assert [(row["case_id"], row["lesion"]) for row in (one, two, three)] == [
        ("A_1", "1"),
        ("A_1", "2"),
        ("B_1", ""),
    ]
    assert (one["mass.shape"], one["mass.shape.codes"]) == ("irregular", "SCT:49608001")
    assert (one["finding"], two["finding"]) == ("mass", "focus")
    assert one["finding.codes"] == "SCT:4147007"
    assert two["finding.codes"] == "99MAMAMIA:finding.focus"
    assert (one["bpe"], two["bpe"], three["fgt"]) == ("mild", "mild", "c")
    assert (one["assessment@right"], one["assessment@left"]) == ("4", "")
    assert one["associated@right"] == "nipple_invasion; skin_invasion"
    assert one["associated@right.codes"] == "DCM:111472; 99MAMAMIA:associated.skin_invasion"
    assert (one["volume"], one["auto"], two["auto"]) == (12.5, "volume", "")
    assert (one["x_mm"], one["measured_from"]) == (1.0, "record")


def test_what_is_filled_in_is_measured_from_the_mask_as_it_stands(opened):
    say(
        opened,
        "A_1",
        {"finding@1": "mass", "volume@1": {"number": "9", "unit": "mm3"}, "clock@1": "3"},
        computed=("volume@1",),
        centres={"1": (240.0, 20.0, 25.0)},
        points=(MarkedPoint(Landmark.NIPPLE, Side.RIGHT, (213.0, 62.5, 26.0)),),
    )
    draw(opened, "A_1")
    (row,) = rows_of(list_findings(opened))
    assert (row["volume"], row["measured_from"]) == (960.0, "refined")
    assert (row["x_mm"], row["y_mm"], row["z_mm"]) == pytest.approx((243.0, 22.5, 26.0))
    # 30 mm outward and 40 mm behind the nipple, at its height: no quadrant on the line
    assert (row["side"], row["to_nipple"], row["quadrant"]) == ("right", 50.0, "")
    assert row["clock"] == "3"  # what the reader said stays
    assert "clock" not in row["auto"].split()


def test_a_mask_that_cannot_be_measured_leaves_its_row_as_it_was_noted_and_is_told(opened):
    say(opened, "A_1", {"finding@1": "mass"})
    say(opened, "A_2", {"finding@1": "nme"})
    path = opened.workspace.refined("Ana", "A_1")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no mask")
    table = list_findings(opened)
    assert [row["finding"] for row in rows_of(table)] == ["mass", "nme"]
    assert [one.case_id for one in table.failures] == ["A_1"]


def test_what_was_measured_from_a_prediction_and_nobody_described_is_no_lesion(opened):
    volumes = {f"volume@{lesion}": {"number": "9", "unit": "mm3"} for lesion in "12"}
    answers = {"assessment@right": "1", "finding@2": "mass"}
    say(opened, "A_1", volumes | {"assessment@right": "1"}, computed=tuple(volumes))
    say(opened, "A_2", volumes | answers, computed=tuple(volumes))
    normal, one = rows_of(list_findings(opened))
    assert (normal["lesion"], normal["volume"], normal["assessment@right"]) == ("", "", "1")
    assert (one["lesion"], one["finding"], one["volume"]) == ("2", "mass", 9.0)


def test_answers_of_a_later_lexicon_have_a_column_of_their_own_and_no_code(opened):
    say(opened, "A_1", {"mass.shape@1": "lobulated", "implant@left": "rupture"})
    (row,) = rows_of(list_findings(opened))
    assert (row["mass.shape"], row["mass.shape.codes"]) == ("lobulated", "")
    assert row["implant@left"] == "rupture"


def test_of_one_reader_and_of_cases_that_are_there_alone(opened):
    say(opened, "A_1", {"bpe": "mild"})
    say(opened, "A_1", {"bpe": "marked"}, reader="Ben")
    say(opened, "gone", {"bpe": "mild"})
    assert [row["reader"] for row in rows_of(list_findings(opened))] == ["Ana", "Ben"]
    assert [row["bpe"] for row in rows_of(list_findings(opened, "Ben"))] == ["marked"]


def test_csv_and_parquet_hold_the_same(opened, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    say(opened, "A_1", {"finding@1": "mass", "to_skin@1": {"number": "4.5", "unit": "mm"}})
    table = write_findings(opened, tmp_path / "out")
    with (tmp_path / "out" / "findings.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    columns = parquet.read_table(tmp_path / "out" / "findings.parquet")
    assert columns.column_names == list(table.columns) == list(row)
    assert (row["to_skin"], columns["to_skin"].to_pylist()) == ("4.5", [4.5])
    assert (row["finding"], columns["finding"].to_pylist()) == ("mass", ["mass"])
    with pytest.raises(SaveConflictError):
        write_findings(opened, tmp_path / "out")


def test_without_pyarrow_the_csv_alone_is_written(opened, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    say(opened, "A_1", {"finding@1": "mass"})
    table = write_findings(opened, tmp_path / "out")
    assert (tmp_path / "out" / "findings.csv").exists()
    assert not (tmp_path / "out" / "findings.parquet").exists()
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[parquet\]"):
        table.save(tmp_path / "table.parquet")


def test_nobody_described_anything(opened, tmp_path):
    table = write_findings(opened, tmp_path / "out")
    assert table.rows == ()
    assert (tmp_path / "out" / "findings.csv").read_text("utf-8").startswith("case_id,reader,")


def test_the_library_gives_the_same_rows(opened):
    say(opened, "A_1", {"finding@1": "mass"})
    frame = library.DataSet(opened).findings(progress=False)
    assert list(frame["finding"]) == ["mass"]
    assert list(frame.columns) == list(list_findings(opened).columns)
