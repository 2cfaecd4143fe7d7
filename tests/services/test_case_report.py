"""A case's report: its numbers by hand, what it must not show, PDF and DICOM read back."""

import csv
import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from napari_mamamia.core.answers import Answer, Answers, Place
from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.choices import SegmentMaker
from napari_mamamia.core.errors import CaseError, MissingExtraError, SaveConflictError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.core.progress import Cancelled
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.workspace.measurements import append_measurement
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.findings.case_findings import (
    keep_findings,
    load_findings_form,
    open_findings,
)
from napari_mamamia.services.report import printing, report
from napari_mamamia.services.report.case_page import make_pictures
from napari_mamamia.services.report.reading import ReportSource, read_case
from napari_mamamia.services.report.report import ReportExtras, report_cases
from napari_mamamia.services.report.structured import DicomChoice

SHAPE = (8, 30, 40)
GRID = Grid(SHAPE, np.diag([-1.0, 1.0, 2.5, 1.0]))
BOX = np.s_[2:6, 10:19, 4:17]
ANYBODY = ReportSource()

with_dots = pytest.mark.usefixtures("quick_figures")
"""Figures are drawn in the tests without it alone."""


def make_data_set(root, case_ids=("A",), grid=GRID, reference=True):
    rng = np.random.default_rng(2)
    for case_id in case_ids:
        for k in range(3):
            volume = rng.integers(90, 110, grid.shape).astype(np.int16)
            volume[BOX] += 120 * (k > 0)
            write_volume(volume, grid, root / f"images/{case_id}/{case_id}_000{k}.nii.gz")
        mask = np.zeros(grid.shape, np.uint8)
        mask[BOX] = 1
        if reference:
            write_volume(mask, grid, root / f"segmentations/expert/{case_id}.nii.gz")
    return open_data_set(root, root.parent / "workspace")


def make_wide_data_set(root):
    """Both breasts in view: the box of 4 mm voxels lies 60 mm right of the middle, x runs left."""
    affine = np.diag([-8.0, 8.0, 8.0, 1.0])
    affine[0, 3] = 160
    return make_data_set(root, grid=Grid(SHAPE, affine))


@pytest.fixture
def opened(tmp_path):
    return make_data_set(tmp_path / "data")


def draw(opened, kind, voxels, reader="Ana", **more):
    points = tuple(map(tuple, GRID.to_world_mm(voxels)))
    item = Measurement("A", kind, points, "axial", 1, reader=reader, **more)
    return append_measurement(opened.workspace.root, item)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@with_dots
def test_the_numbers_of_a_box_are_those_by_hand(opened, tmp_path):
    summary = report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    assert summary.failures == ()
    rows = {row["item"]: row for row in rows_of(tmp_path / "out/measures.csv")}
    # 4 x 9 x 13 voxels of 2.5 mm3; 8 rows and 12 columns between centres; 3 slices of 2.5 mm
    assert rows["Volume"]["value"] == "1.17"
    assert float(rows["Longest in plane"]["number"]) == pytest.approx(208**0.5)
    assert float(rows["Perpendicular"]["number"]) == pytest.approx(2 * 8 * 12 / 208**0.5)
    assert float(rows["Head–foot"]["number"]) == pytest.approx(7.5)
    assert float(rows["Longest in 3-D"]["number"]) == pytest.approx((208 + 7.5**2) ** 0.5)
    assert rows["Longest in plane"]["item_codes"] == "SCT:103339001"
    assert rows["Longest in plane"]["unit"] == "mm"


@with_dots
def test_without_pyarrow_the_table_is_csv_alone(opened, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    draw(opened, MeasureKind.RULER, [(3, 2, 2), (3, 2, 12)])
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    assert [path.name for path in sorted((tmp_path / "out").glob("measures.*"))] == ["measures.csv"]


@with_dots
def test_the_table_as_parquet_holds_the_same(opened, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    draw(opened, MeasureKind.RULER, [(3, 2, 2), (3, 2, 12)])
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    table = parquet.read_table(tmp_path / "out/measures.parquet").to_pylist()
    rows = rows_of(tmp_path / "out/measures.csv")
    assert [row["value"] for row in table] == [row["value"] for row in rows]
    assert [row["number"] for row in table] == [
        float(row["number"]) if row["number"] else None for row in rows
    ]


def test_the_page_needs_nothing_else_and_says_what_it_is_not(opened, tmp_path):
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    page = (tmp_path / "out/A.html").read_text("utf-8")
    assert "For research use only. Not a medical device" in page
    assert "the data set&#39;s reference" in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert "<script" not in page
    assert page.count('src="data:image/png;base64,') == 1


@with_dots
def test_words_of_a_reader_stay_words(opened, tmp_path):
    draw(opened, MeasureKind.ARROW, [(3, 2, 2), (3, 5, 9)], text="<script>x</script> $\\frac{")
    draw(opened, MeasureKind.KEY_IMAGE, [(3, 10, 10)], text="=cmd()")
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    page = (tmp_path / "out/A.html").read_text("utf-8")
    assert "&lt;script&gt;" in page
    assert "<script" not in page


@with_dots
def test_what_was_drawn_stands_in_page_and_table_with_who_drew_it(opened, tmp_path):
    draw(opened, MeasureKind.CROSS, [(3, 2, 2), (3, 2, 14), (3, 0, 8), (3, 5, 8)])
    draw(opened, MeasureKind.ELLIPSE, [(3, 14, 10), (3, 14, 13), (3, 16, 10)], reader="Ben")
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    rows = [row for row in rows_of(tmp_path / "out/measures.csv") if row["scope"] == "drawing"]
    assert [(row["item"], row["value"], row["reader"]) for row in rows[:3]] == [
        ("Long axis", "12.0", "Ana"),
        ("Short axis", "5.0", "Ana"),
        ("Area", "18.8", "Ben"),
    ]
    assert "12.0 mm × 5.0 mm" in (tmp_path / "out/A.html").read_text("utf-8")
    # of one reader alone
    mine = report_cases(opened, tmp_path / "mine", ReportSource(reader="Ben"), ReportExtras())
    assert {row.reader for row in mine.reports[0].rows} == {"", "Ben"}


@with_dots
def test_key_images_come_first_and_each_lesion_at_its_largest_slice_after_them(opened):
    def names():
        reading = read_case(opened, opened.data_set.case("A"), ANYBODY)
        return [(one.name, one.caption) for one in make_pictures(reading)]

    ((name, caption),) = names()
    assert name == "1. lesion 1"
    assert caption.startswith("axial, slice 3 of 8, first post-contrast minus pre-contrast")
    of_lesion = caption
    draw(opened, MeasureKind.KEY_IMAGE, [(6, 3, 3)], text="duct")
    assert names() == [
        ("1. key image · duct", "axial, slice 7 of 8, post 1; scale bar 10 mm"),
        ("2. lesion 1", of_lesion),
    ]


@with_dots
def test_the_largest_slice_of_a_lesion_is_where_its_longest_diameter_lies(opened, tmp_path):
    # 3 columns on slices 2 and 3, 11 on slice 4: 10 mm between the outer centres there
    mask = np.zeros(SHAPE, np.uint8)
    mask[2:4, 10, 10:13] = 1
    mask[4, 10, 5:16] = 1
    mask[6, 20:23, 30] = 1
    write_volume(mask, GRID, tmp_path / "masks/A.nii.gz")
    reading = read_case(opened, opened.data_set.case("A"), ReportSource(tmp_path / "masks"))
    pictures = [(one.name, one.caption.split(",")[1]) for one in make_pictures(reading)]
    assert pictures == [
        ("1. lesion 1", " slice 5 of 8"),
        ("2. lesion 2", " slice 7 of 8"),
    ]


@with_dots
def test_a_drawing_tells_which_lesion_it_is_of_and_an_older_one_none(opened, tmp_path):
    draw(opened, MeasureKind.RULER, [(3, 5, 5), (3, 5, 9)], lesion="1")
    draw(opened, MeasureKind.RULER, [(3, 7, 5), (3, 7, 9)])
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    rows = [row for row in rows_of(tmp_path / "out/measures.csv") if row["scope"] == "drawing"]
    assert [row["place"] for row in rows] == ["ruler 1 of lesion 1", "ruler 2"]


@with_dots
@pytest.mark.parametrize("at", ["page", "pdf"])
def test_a_stop_leaves_whole_reports_alone_and_their_table(tmp_path, monkeypatch, at):
    opened = make_data_set(tmp_path / "data", ("A", "B", "C"))
    finished = []

    def write(child, html, title, path, *, overwrite=False):
        if path.stem == "B" and at == "pdf":
            raise Cancelled
        path.write_bytes(b"%PDF")

    def make(reading):
        if reading.case.case_id == "B" and at == "page":
            raise Cancelled
        return make_page(reading)

    make_page = report.make_case_page
    monkeypatch.setattr(report, "write_pdf", write)
    monkeypatch.setattr(report, "make_case_page", make)
    monkeypatch.setattr(report, "require_qt", lambda: None)
    wish = ReportExtras(has_pdf=True)
    with pytest.raises(Cancelled):
        report_cases(opened, tmp_path / "out", ANYBODY, wish, finished=finished)
    assert [one.case_id for one in finished] == ["A"]
    pages = {path.name for path in (tmp_path / "out").iterdir() if path.stem in "ABC"}
    assert pages == {"A.html", "A.pdf"}
    assert {row["case_id"] for row in rows_of(tmp_path / "out/measures.csv")} == {"A"}


@with_dots
@pytest.mark.parametrize("at", ["reading", "drawing", "pdf", "dicom"])
def test_a_new_report_that_is_stopped_before_it_is_whole_leaves_no_folder(
    opened, tmp_path, monkeypatch, at
):
    def stop(*_args, **_keywords):
        if at == "dicom":
            (next((tmp_path / "reports").iterdir()) / "A_dicom").mkdir()
        raise Cancelled

    place = {"reading": "read_case", "drawing": "write_page", "pdf": "write_pdf"}
    monkeypatch.setattr(report, place.get(at, "write_pdf"), stop)
    monkeypatch.setattr(report, "require_qt", lambda: None)
    for _ in range(2):
        with pytest.raises(Cancelled):
            report.report_anew(opened, tmp_path / "reports", ANYBODY, ReportExtras(has_pdf=True))
        assert list((tmp_path / "reports").iterdir()) == []


@with_dots
@pytest.mark.parametrize("anew", [False, True])
def test_a_stop_while_the_page_is_half_written_leaves_nothing_and_the_next_one_is_whole(
    opened, tmp_path, monkeypatch, anew
):
    usual, halves = Path.write_bytes, []

    def write(path, data):
        if b"<html" not in data or halves:
            return usual(path, data)
        halves.append(path)
        usual(path, data[: len(data) // 2])
        raise Cancelled

    def report_once(existing=Existing.REFUSE):
        if anew:
            return report.report_anew(opened, tmp_path / "out", ANYBODY, ReportExtras())
        given = (opened, tmp_path / "out", ANYBODY, ReportExtras())
        return report_cases(*given, existing=existing)

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(Cancelled):
        report_once()
    assert len(halves) == 1
    left = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert not {name for name in left if name.startswith((".", "A"))}, "half a page"
    assert not anew or left == set(), "half a report"
    report_once(Existing.RESUME)
    (page,) = (tmp_path / "out").rglob("A.html")
    assert page.read_text("utf-8").rstrip().endswith("</html>")
    assert {row["case_id"] for row in rows_of(page.parent / "measures.csv")} == {"A"}
    assert not list((tmp_path / "out").rglob(".*"))


@with_dots
def test_what_somebody_puts_into_a_report_s_folder_stays_when_it_is_stopped(
    opened, tmp_path, monkeypatch
):
    def stop(*_args, **_keywords):
        (folder,) = (tmp_path / "reports").iterdir()
        (folder / "notes.txt").write_text("mine")
        raise Cancelled

    monkeypatch.setattr(report, "write_page", stop)
    with pytest.raises(Cancelled):
        report.report_anew(opened, tmp_path / "reports", ANYBODY, ReportExtras(has_pdf=False))
    (folder,) = (tmp_path / "reports").iterdir()
    assert {path.name for path in folder.iterdir()} == {"notes.txt", "run.json"}


@with_dots
def test_a_key_image_outside_the_volume_shows_the_last_slice(opened):
    draw(opened, MeasureKind.KEY_IMAGE, [(60, 3, 3)])
    picture, _lesion = make_pictures(read_case(opened, opened.data_set.case("A"), ANYBODY))
    assert "slice 8 of 8" in picture.caption


@with_dots
def test_a_case_without_mask_and_one_with_an_empty_mask_say_so(tmp_path):
    opened = make_data_set(tmp_path / "data", ("A", "B"), reference=False)
    masks = tmp_path / "masks"
    write_volume(np.zeros(SHAPE, np.uint8), GRID, masks / "A.nii.gz")
    summary = report_cases(
        opened, tmp_path / "out", ReportSource(masks), ReportExtras(has_pdf=False)
    )
    assert summary.failures == ()
    assert "The mask is empty" in (tmp_path / "out/A.html").read_text("utf-8")
    assert "masks has no mask of this case" in (tmp_path / "out/B.html").read_text("utf-8")
    assert rows_of(tmp_path / "out/measures.csv") == []


@with_dots
def test_masks_of_several_readers_are_never_chosen_among_and_the_others_go_on(tmp_path):
    opened = make_data_set(tmp_path / "data", ("A", "B"))
    for reader in ("Ana", "Ben"):
        mask = np.zeros(SHAPE, np.uint8)
        mask[3, 4, 5] = 1
        write_volume(mask, GRID, opened.workspace.refined(reader, "A"))
    summary = report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    (failure,) = summary.failures
    assert failure.case_id == "A"
    assert "Ana, Ben" in failure.reason
    assert [remedy.option for remedy in failure.remedies] == ["reader", "masks"]
    assert [one.case_id for one in summary.reports] == ["B"]
    mine = report_cases(opened, tmp_path / "mine", ReportSource(reader="Ana"), ReportExtras())
    assert mine.failures == ()
    assert "drawn by Ana" in (tmp_path / "mine/A.html").read_text("utf-8")


@with_dots
def test_a_mask_on_another_grid_fails_its_case_alone(tmp_path):
    opened = make_data_set(tmp_path / "data", ("A", "B"))
    moved = GRID.affine.copy()
    moved[0, 3] += 9
    path = tmp_path / "data/segmentations/expert/A.nii.gz"
    path.unlink()
    write_volume(np.ones(SHAPE, np.uint8), Grid(SHAPE, moved), path)
    summary = report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    assert [one.case_id for one in summary.failures] == ["A"]
    assert [one.case_id for one in summary.reports] == ["B"]


@with_dots
def test_a_damaged_record_of_measurements_is_told_on_the_page(opened, tmp_path):
    draw(opened, MeasureKind.RULER, [(3, 2, 2), (3, 2, 12)])
    draw(opened, MeasureKind.RULER, [(3, 2, 2), (3, 2, 12)])
    (path,) = (opened.workspace.root / "measurements/Ana").iterdir()
    path.write_bytes(path.read_bytes().replace(b'"2.000"', b'"9.000"', 1))
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    assert "1 damaged entry" in (tmp_path / "out/A.html").read_text("utf-8")


@with_dots
def test_an_older_report_is_never_replaced_unasked(opened, tmp_path):
    report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    before = (tmp_path / "out/A.html").read_bytes()
    with pytest.raises(SaveConflictError):
        report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    assert (tmp_path / "out/A.html").read_bytes() == before


LEXICON = load_findings_form()
LESION = Place(FieldScope.LESION, "1")
RIGHT, LEFT = (Place(FieldScope.BREAST, side) for side in ("right", "left"))
PRIVATE = "99MAMAMIA:assessment."
WORDS = (
    Answer("bpe", ("mild",)),
    Answer("assessment", ("4",), RIGHT),
    Answer("finding", ("mass",), LESION),
    Answer("mass.shape", ("irregular",), LESION),
    Answer("mass.margin", ("not_circumscribed",), LESION),
)


def describe(opened, *answers, reader="Ana", case_id="A"):
    """Answer as a window does: open, answer, keep."""
    before = open_findings(opened.workspace, reader, case_id)
    now = replace(before, answers=Answers((*before.answers.items, *answers)))
    keep_findings(opened.workspace, reader, case_id, LEXICON, before.answers, now)


def page_of(opened, out, source=ANYBODY, wish=None):
    summary = report_cases(opened, out, source, wish or ReportExtras())
    assert summary.failures == ()
    return (out / "A.html").read_text("utf-8")


@with_dots
def test_answers_stand_in_page_and_table_with_codes_and_what_is_open(opened, tmp_path):
    describe(opened, *WORDS, Answer("of a later edition", ("x",)))
    page = page_of(opened, tmp_path / "out")
    rows = rows_of(tmp_path / "out/measures.csv")
    seen = [
        (row["scope"], row["place"], row["item"], row["value"], row["value_codes"], row["reader"])
        for row in rows
        if row["source"] == "answered"
    ]
    assert seen == [
        ("case", "", "Background parenchymal enhancement", "mild", "SCT:255604002", "Ana"),
        (
            "breast",
            "right",
            "Assessment category",
            "4, suspicious",
            "99MAMAMIA:assessment.4",
            "Ana",
        ),
        ("lesion", "1", "Finding", "mass", "SCT:4147007", "Ana"),
        ("lesion", "1", "Mass: shape", "irregular", "SCT:49608001", "Ana"),
        ("lesion", "1", "Mass: margin", "not circumscribed", "RADLEX:RID34355", "Ana"),
        ("case", "", "of a later edition", "x", "", "Ana"),
    ]
    missing = [(row["place"], row["item"]) for row in rows if row["value"] == "not answered"]
    assert missing == [
        ("", "Amount of fibroglandular tissue"),
        ("1", "Mass: margin, not circumscribed"),
        ("1", "Mass: internal enhancement"),
        ("1", "Side"),
    ]
    assert "Described by Ana" in page
    assert "<td>not answered</td>" in page
    assert "Mass: internal enhancement: not answered" in page
    assert "irregular SCT:49608001" in page


@with_dots
def test_a_case_that_nobody_described_says_so_and_has_no_open_questions(opened, tmp_path):
    page = page_of(opened, tmp_path / "out")
    assert "No findings entered." in page
    assert "not answered" not in page
    assert "not answered" not in (tmp_path / "out/measures.csv").read_text("utf-8")


@with_dots
def test_a_finding_on_the_other_side_than_its_mask_stands_at_the_top_of_the_page(tmp_path):
    opened = make_wide_data_set(tmp_path / "data")
    describe(opened, *WORDS, Answer("side", ("left",), LESION))
    page = page_of(opened, tmp_path / "out")
    text = "Lesion 1: Side: left, but the mask of lesion 1 lies on the right side"
    assert page.index(text) < page.index("<h2>Lesions")
    (row,) = [row for row in rows_of(tmp_path / "out/measures.csv") if row["item"] == "Side"]
    assert (row["value"], row["source"]) == ("left", "answered")


@with_dots
def test_a_volume_that_a_reader_typed_is_in_ml_on_the_page_and_in_mm3_in_the_table(
    opened, tmp_path
):
    describe(opened, *WORDS, Answer("volume", ("4642.8",), LESION))
    page = page_of(opened, tmp_path / "out")
    assert "Volume: 4.6428 ml" in page
    assert "mm3" not in page
    rows = [
        (row["value"], row["unit"])
        for row in rows_of(tmp_path / "out/measures.csv")
        if row["item"] == "Volume" and row["source"] == "answered"
    ]
    assert rows == [("4642.8", "mm3")]


@with_dots
def test_a_lesion_that_was_described_and_erased_is_still_told(opened, tmp_path):
    describe(opened, *WORDS)
    write_volume(np.zeros(SHAPE, np.uint8), GRID, opened.workspace.refined("Ana", "A"))
    page = page_of(opened, tmp_path / "out")
    assert "The mask is empty" in page
    assert "Lesion 1: Finding: mass, but the mask has no lesion 1" in page
    assert "Mass: shape: irregular" in page


@with_dots
def test_findings_of_several_readers_are_never_chosen_among(opened, tmp_path):
    describe(opened, *WORDS)
    describe(opened, Answer("bpe", ("marked",)), reader="Ben")
    summary = report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras())
    assert "Ana, Ben" in summary.failures[0].reason
    assert not (tmp_path / "out/A.html").exists()
    page = page_of(opened, tmp_path / "ben", ReportSource(reader="Ben"))
    assert "marked" in page
    assert "irregular" not in page
    assert "the findings of Ana are not in this report" in page
    # the mask's reader reports where only one drew one
    write_volume(np.ones(SHAPE, np.uint8), GRID, opened.workspace.refined("Ana", "A"))
    assert "Described by Ana" in page_of(opened, tmp_path / "ana")


@with_dots
def test_a_blind_reader_reports_what_is_his_alone(opened, tmp_path):
    describe(opened, *WORDS)
    describe(opened, Answer("bpe", ("marked",)), reader="Ben")
    workspace = replace(opened.workspace, blinding=Blinding.of(["other readers"]), reader="Ben")
    reading = read_case(replace(opened, workspace=workspace), opened.data_set.case("A"), ANYBODY)
    assert (reading.described.reader, reading.described.answers.items[0].values) == (
        "Ben",
        ("marked",),
    )


@with_dots
def test_a_damaged_line_of_the_findings_is_told_without_the_path(opened, tmp_path):
    describe(opened, *WORDS)
    (path,) = (opened.workspace.root / "findings/Ana").iterdir()
    path.write_bytes(path.read_bytes().replace(b"irregular", b"irregulax", 1))
    page = page_of(opened, tmp_path / "out")
    assert "it lacks 1 damaged entry" in page
    assert str(tmp_path) not in page


# ------------------------------------------------------------------------------- PDF


@with_dots
def test_without_qt_a_pdf_is_refused_before_anything_is_written(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(printing, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[pyqt6\]"):
        report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras(has_pdf=True))
    assert not (tmp_path / "out").exists()


def test_the_pdf_holds_the_text_of_the_page(opened, tmp_path):
    """Read by Qt's own reader in another program: an application of Qt here would stay."""
    pytest.importorskip("PyQt6.QtPdf")
    draw(opened, MeasureKind.RULER, [(3, 2, 2), (3, 2, 12)], text="größte <b>&amp;</b>")
    summary = report_cases(opened, tmp_path / "out", ANYBODY, ReportExtras(has_pdf=True))
    assert summary.failures == ()
    code = (
        "import sys, json\n"
        "from PyQt6.QtGui import QGuiApplication\nfrom PyQt6.QtPdf import QPdfDocument\n"
        "app = QGuiApplication(['x', '-platform', 'offscreen'])\n"
        "pdf = QPdfDocument(None); pdf.load(sys.argv[1])\n"
        "pages = range(pdf.pageCount())\n"
        "print(json.dumps([pdf.getAllText(page).text() for page in pages]))"
    )
    path = str(tmp_path / "out/A.pdf")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=True)
    pages = json.loads(done.stdout)
    assert len(pages) == 1  # a case with one lesion and one ruler is one sheet
    text = " ".join(pages[0].split())
    for part in ("For research use only", "10.0 mm", "größte <b>&amp;</b>", "14.4", "Methods"):
        assert part in text


# ------------------------------------------------------------------------------ DICOM

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)


@pytest.fixture
def exam(tmp_path):
    pytest.importorskip("highdicom")
    named = {"PatientID": "Meier", "PatientName": "Meier^Eva", "FrameOfReferenceUID": "2.25.6"}
    phantoms.write_exam(tmp_path / "CASE_1", 3, SliceThickness=phantoms.GAP, **named)
    return tmp_path / "CASE_1"


def make_masks(folder, opened):
    (files,) = opened.data_set.cases
    from napari_mamamia.io.data_set.volumes import read_phase_header

    grid = read_phase_header(files.phases[0]).grid
    mask = np.zeros(grid.shape, np.uint8)
    mask[1:3, 3:10, 3:11] = 1  # more than the 65 mm3 from which a curve has classes
    mask[0, 0, 0] = 1
    path = folder / f"{files.case_id}.nii.gz"
    write_volume(mask, grid, path)
    write_provenance(Provenance(files.case_id, Maker.READER, "Ana"), sidecar_path(path))
    return files.case_id, grid


@with_dots
def test_a_dicom_report_is_read_back_with_the_same_numbers(exam, tmp_path):
    import highdicom as hd
    import pydicom

    opened = open_data_set(exam, tmp_path / "workspace")
    case_id, grid = make_masks(tmp_path / "masks", opened)
    points = tuple(map(tuple, grid.to_world_mm([(2, 1, 1), (2, 1, 9)])))
    for kind, count in ((MeasureKind.RULER, 2), (MeasureKind.KEY_IMAGE, 1)):
        append_measurement(
            opened.workspace.root,
            Measurement(case_id, kind, points[:count], "axial", 1, reader="Ána 李"),
        )
    wish = ReportExtras(dicom=DicomChoice())
    summary = report_cases(opened, tmp_path / "out", ReportSource(tmp_path / "masks"), wish)
    assert summary.failures == ()
    folder = tmp_path / "out/dicom"
    report = hd.sr.srread(folder / f"{case_id}_sr.dcm")
    groups = report.content.get_volumetric_roi_measurement_groups()
    rows = rows_of(tmp_path / "out/measures.csv")
    seen = [
        (str(group.tracking_identifier), float(one.value))
        for group in groups
        for one in group.get_measurements()
    ]
    expected = [
        (f"lesion {row['place']}", float(f"{float(row['number']):.6g}"))
        for row in rows
        if row["scope"] == "lesion" and row["number"]
    ]
    assert seen == expected
    assert len(groups) == 2
    segmentation = hd.seg.segread(folder / f"{case_id}_seg.dcm")
    named = [one.value for one in report.iterall() if one.keyword == "ReferencedSegmentNumber"]
    assert named == [1, 2]
    assert segmentation.number_of_segments == 2
    (ruler,) = report.content.get_image_measurement_groups()
    (length,) = ruler.get_measurements()
    assert float(length.value) == pytest.approx(np.linalg.norm(np.subtract(*points)), abs=1e-3)
    assert str(ruler.tracking_identifier) == "ruler 1 of Ána 李"
    for path in folder.iterdir():
        data = pydicom.dcmread(path)
        assert (data.PatientID, data.PatientIdentityRemoved) == (case_id, "YES")
        assert b"Meier" not in path.read_bytes()


def walk_codes(item):
    """Every coded answer of a document as pydicom reads it: name, codes, words, what is below."""
    for one in item.get("ContentSequence", []):
        if one.ValueType == "CODE":
            concept, value = one.ConceptNameCodeSequence[0], one.ConceptCodeSequence[0]
            inner = [
                below.ConceptCodeSequence[0].CodeValue for below in one.get("ContentSequence", [])
            ]
            codes = [
                (code.get("CodeValue") or code.get("LongCodeValue"), code.CodingSchemeDesignator)
                for code in (concept, value)
            ]
            yield (concept.CodeMeaning, *codes, value.CodeMeaning, inner)
        yield from walk_codes(one)


@with_dots
def test_answers_in_the_structured_report_have_the_lexicons_codes_and_numbers(exam, tmp_path):
    import highdicom as hd
    import pydicom

    opened = open_data_set(exam, tmp_path / "workspace")
    case_id, _ = make_masks(tmp_path / "masks", opened)
    distance = Answer("to_skin", ("12.5",), LESION)
    gone = Answer("finding", ("focus",), Place(FieldScope.LESION, "7"))
    describe(opened, *WORDS, distance, gone, reader="Ána 李", case_id=case_id)
    source = ReportSource(tmp_path / "masks")
    summary = report_cases(opened, tmp_path / "out", source, ReportExtras(dicom=DicomChoice()))
    assert summary.failures == ()
    page = (tmp_path / f"out/{case_id}.html").read_text("utf-8")
    # of its one voxel no curve type is stated, and both zeros of time are named
    assert "Lesions too small for a curve type: 2." in page
    assert "times from the start of the first" in page
    path = tmp_path / f"out/dicom/{case_id}_sr.dcm"
    document = pydicom.dcmread(path)
    assert document.CompletionFlag == "PARTIAL"  # required questions are open
    codes = list(walk_codes(document))
    own = "99MAMAMIA"
    for line in (
        ("Finding", ("finding", own), ("4147007", "SCT"), "mass", []),
        ("Finding", ("finding", own), ("finding.focus", own), "focus", []),
        ("Mass: shape", ("mass.shape", own), ("49608001", "SCT"), "irregular", []),
        ("Mass: margin", ("mass.margin", own), ("RID34355", "RADLEX"), "not circumscribed", []),
        ("Assessment category", ("111005", "DCM"), ("assessment.4", own), "4, suspicious", []),
    ):
        assert line in codes
    (filled_in,) = [line for line in codes if line[0] == "Kinetics: initial phase"]
    assert filled_in[2:] == (("kin.initial.medium", own), "medium", ["computed"])
    report = hd.sr.srread(path)
    (lesion,) = report.content.get_volumetric_roi_measurement_groups()[:1]
    numbers = {str(one.name.value): float(one.value) for one in lesion.get_measurements()}
    assert numbers["121243"] == 12.5
    names = {str(one.tracking_identifier) for one in report.content.get_image_measurement_groups()}
    assert names == {"lesion 7 without a mask", "case", "breast right"}


@with_dots
@pytest.mark.skipif(which("dciodvfy") is None, reason="dciodvfy (dicom3tools) is not installed")
def test_dciodvfy_finds_no_error_in_the_dicom_objects(exam, tmp_path):
    opened = open_data_set(exam, tmp_path / "workspace")
    case_id, _ = make_masks(tmp_path / "masks", opened)
    describe(opened, *WORDS, Answer("to_skin", ("12.5",), LESION), case_id=case_id)
    # without provenance the algorithm has no name of its own, and DICOM asks for one
    sidecar_path(tmp_path / f"masks/{case_id}.nii.gz").unlink()
    wish = ReportExtras(dicom=DicomChoice(maker=SegmentMaker.SEMIAUTOMATIC))
    report_cases(opened, tmp_path / "out", ReportSource(tmp_path / "masks"), wish)
    files = sorted((tmp_path / "out/dicom").iterdir())
    assert len(files) == 3
    for path in files:
        run = subprocess.run(["dciodvfy", "-new", path], capture_output=True, check=False)
        text = run.stderr.decode(errors="replace")
        assert "Error" not in text, text


@with_dots
def test_key_objects_name_the_slice_that_was_marked(exam, tmp_path):
    import pydicom

    opened = open_data_set(exam, tmp_path / "workspace")
    case_id, grid = make_masks(tmp_path / "masks", opened)
    point = tuple(grid.to_world_mm((2, 5, 5)))
    mark = Measurement(case_id, MeasureKind.KEY_IMAGE, (point,), "axial", 1, reader="Ana")
    append_measurement(opened.workspace.root, mark)
    choice = DicomChoice(is_identified=True)
    source = ReportSource(tmp_path / "masks")
    report_cases(opened, tmp_path / "out", source, ReportExtras(dicom=choice))
    document = pydicom.dcmread(tmp_path / f"out/dicom_identified/{case_id}_ko.dcm")
    assert str(document.PatientName) == "Meier^Eva"
    named, *_of_lesions = [
        item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID
        for item in document.ContentSequence
        if item.ValueType == "IMAGE"
    ]
    (files,) = opened.data_set.cases
    shown = pydicom.dcmread(files.phases[1].files[2], stop_before_pixels=True)
    assert named == shown.SOPInstanceUID


@with_dots
def test_a_case_that_is_no_dicom_says_so_and_its_page_is_there(opened, tmp_path):
    pytest.importorskip("highdicom")
    wish = ReportExtras(dicom=DicomChoice(maker=SegmentMaker.MANUAL))
    summary = report_cases(opened, tmp_path / "out", ANYBODY, wish)
    (failure,) = summary.failures
    assert [remedy.option for remedy in failure.remedies] == ["study"]
    assert (tmp_path / "out/A.html").is_file()
    assert not (tmp_path / "out/dicom").exists()
    assert [path.name for path in summary.reports[0].files] == ["A.html"]


@with_dots
def test_a_study_that_is_not_there_is_refused_at_once(opened, tmp_path):
    pytest.importorskip("highdicom")
    wish = ReportExtras(dicom=DicomChoice(tmp_path / "none"))
    with pytest.raises(CaseError, match=r"the DICOM folder .*none does not exist"):
        report_cases(opened, tmp_path / "out", ANYBODY, wish)
    assert not (tmp_path / "out").exists()
