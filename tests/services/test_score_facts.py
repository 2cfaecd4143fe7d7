"""What stands beside the scores: cost, tags, low contrast, why a case has no score."""

import json

import nibabel as nib
import numpy as np
import openpyxl
import pandas as pd
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.choices import CompositeName
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.core.records import CaseFailure, CaseScore, FailureCause, ScoreStatus
from napari_mamamia.io.tables.tables import read_case_scores, write_case_scores
from napari_mamamia.io.workspace.provenance import write_provenance
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.scoring.case.prediction_cost import prediction_costs
from napari_mamamia.scoring.cohort.ranking import CompositeChoice
from napari_mamamia.scoring.report.drawing import Drawing, draw_now
from napari_mamamia.scoring.report.figures import volume_histogram
from napari_mamamia.services.batch.in_subprocess import drawing_beside
from napari_mamamia.services.score.case_tags import tag_case
from napari_mamamia.services.score.models import PredictionFolder, score_models
from napari_mamamia.services.score.score import _make_failed_score, score_folders
from napari_mamamia.services.score.settings import ScoreSettings

pytestmark = pytest.mark.usefixtures("quick_figures")

SHAPE = (30, 24, 20)


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array, np.eye(4)), path)


def cube(start):
    array = np.zeros(SHAPE, dtype=np.uint8)
    array[start : start + 6, 8:14, 8:14] = 1
    return array


@pytest.fixture
def folders(tmp_path):
    """Cases A (bright) and B (faint), 1 mm voxels; the prediction of B lies on another grid."""
    noise = np.random.default_rng(1).integers(0, 40, (2, *SHAPE)).astype(np.int16)
    for case_id, gain in (("A", 400), ("B", 0)):
        save(tmp_path / f"reference/{case_id}.nii.gz", cube(10))
        save(tmp_path / f"model/{case_id}.nii.gz", cube(11) if case_id == "A" else cube(10)[:20])
        for phase in (0, 1):
            image = noise[phase] + phase * gain * cube(10).astype(np.int16)
            name = f"{case_id.lower()}_{phase:04d}.nii.gz"
            save(tmp_path / f"data/images/{case_id}/{name}", image)
    made = Provenance("A", Maker.MODEL, "m", seconds=2.5, device="cpu", peak_memory_bytes=3_000_000)
    write_provenance(made, tmp_path / "model/A.json")
    return tmp_path


def scored(folders, **settings):
    made = ScoreSettings(n_resamples=0, **settings)
    summary = score_folders(folders / "reference", folders / "model", folders / "out", made)
    return summary, summary.report.read_text()


def test_the_cost_of_a_prediction_and_its_tags_are_columns_of_every_table(folders):
    workspace = Workspace(folders / "workspace")
    tag_case(workspace, "Ana", "a", "implant")
    summary, page = scored(folders, workspace=workspace.root)
    a, b = read_case_scores(summary.table)
    assert (a.prediction_seconds, a.device, a.peak_memory_bytes) == (2.5, "cpu", 3e6)
    assert np.isnan(b.prediction_seconds)
    assert (b.device, b.tags, a.tags) == ("", "", "implant")
    frame = pd.read_parquet(summary.table.with_suffix(".parquet"))
    assert frame["tags"].tolist() == ["implant", ""]
    assert "Peak memory of the process" in page
    assert json.loads(summary.summary.read_text())["prediction_cost"]["seconds"]["n"] == 1


def test_costs_are_median_and_worst_over_the_cases_that_tell_them():
    rows = [
        CaseScore(str(k), ScoreStatus.OK, prediction_seconds=s, device=device)
        for k, (s, device) in enumerate([(1.0, "cpu"), (9.0, "gpu"), (2.0, "cpu"), (np.nan, "")])
    ]
    found = prediction_costs(rows)
    assert (found.seconds.median, found.seconds.worst, found.seconds.n) == (2.0, 9.0, 3)
    assert found.peak_memory_bytes.n == 0
    assert found.devices == (("cpu", 2), ("gpu", 1))


def test_the_longest_diameter_of_a_cube_of_6_voxels_is_its_diagonal(folders):
    summary, _ = scored(folders)
    assert summary.rows[0].diameter_reference_mm == pytest.approx(5 * 3**0.5)  # between centres


def test_masks_on_other_grids_are_a_geometry_mismatch_in_the_report(folders):
    summary, page = scored(folders)
    assert summary.rows[1].status is ScoreStatus.GRID_MISMATCH
    assert "geometry mismatch" in page.partition('id="case-data"')[2]


def test_without_images_the_report_says_that_low_contrast_was_not_looked_for(folders):
    _, page = scored(folders)
    assert "Low contrast was not checked, because there is no data set with images" in page


def test_a_faint_tumour_has_low_contrast_where_images_are_given(folders):
    save(folders / "model/B.nii.gz", cube(10))
    _, page = scored(folders, images=folders / "data")
    data = json.loads(page.partition('id="case-data">')[2].partition("</script>")[0])
    columns = {column["name"]: column for column in data["columns"]}
    kinds = columns["failure_kinds"]
    said = [kinds["texts"][code] for code in kinds["codes"]]
    assert ["low contrast" in text for text in said] == [False, True]
    bright, faint = columns["contrast_to_noise"]["numbers"]
    assert bright > 5 > 1 > faint
    assert "Low contrast was not looked for" not in page


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (FailureCause.ERROR, "unreadable"),
        (FailureCause.TIME_LIMIT, "time_limit"),
        (FailureCause.WORKER_LOST, "worker_lost"),
    ],
)
def test_the_status_of_a_case_says_why_it_was_not_finished(cause, status):
    row = _make_failed_score(CaseFailure("A", "because", cause), ScoreSettings())
    assert (row.status.value, row.reason) == (status, "because")


def test_the_variants_stand_beside_the_ranking_score_and_do_not_change_it(folders):
    choice = CompositeChoice((CompositeName.GATED,), gate=0.9, baseline="two")
    settings = ScoreSettings(n_resamples=0, composites=choice)
    models = [
        PredictionFolder("one", folders / "model"),
        PredictionFolder("two", folders / "model"),
    ]
    score_models(folders / "reference", models, folders / "both", settings)
    compared = json.loads((folders / "both/comparison.json").read_text())
    own = json.loads((folders / "both/one/summary.json").read_text())["task1"]
    assert compared["baseline"] == "two"
    assert [test["model_b"] for test in compared["against_baseline"]] == ["two", "two"]
    assert compared["composites"][0]["name"] == own["composites"][0]["name"] == "performance-gated"
    assert "unless the performance is above 0.9" in own["composites"][0]["definition"]
    assert own["ranking_score"] is None  # there is no clinical table


def test_a_process_beside_this_one_draws_the_same_figure_and_ends_with_the_block():
    drawing = Drawing(volume_histogram, (np.array([10.0, 20.0, 400.0]),))
    with drawing_beside() as draw:
        child = draw.args[0]
        found = draw(drawing)
        assert child.pid is not None
    assert child.pid is None
    assert found == draw_now(drawing)


def test_a_table_of_texts_that_spreadsheets_misread_comes_back_from_xlsx(tmp_path):
    ids = ["=1+1", "<a> & b", "_x0041_", "two\nlines", " blank ", "bell\x07"]
    rows = [CaseScore(i, ScoreStatus.OK, dsc=0.1 + 0.2, iou=float("inf")) for i in ids]
    write_case_scores(rows, tmp_path / "s.xlsx")
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    assert book.sheetnames == ["case_scores"]
    cells = list(book["case_scores"].iter_rows(values_only=True))
    assert cells[0][:4] == ("case_id", "status", "dsc", "iou")
    read = [line[0] for line in cells[1:]]
    assert [text.replace("_x005F_", "_") for text in read] == [*ids[:5], "bell?"]
    assert cells[1][2:4] == (0.1 + 0.2, None)


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_a_table_that_is_cancelled_leaves_no_file(tmp_path, suffix):
    rows = [CaseScore(str(k), ScoreStatus.OK) for k in range(30_000)]
    job = Stepped(write_case_scores, rows, tmp_path / f"s.{suffix}")
    next(job)
    job.close()
    assert list(tmp_path.iterdir()) == []
