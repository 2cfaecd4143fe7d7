"""A metric is an entry of the registry: with a function and a field it is everywhere.

A program of its own gets one more entry before anything else is imported, so that no other edit
can have brought it there.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

PROGRAM = """
import json, sys
from dataclasses import make_dataclass
from pathlib import Path
from napari_mamamia.core import records
from napari_mamamia.metrics import registry

new = ("trial_number", float, float("nan"))
records.CaseScore = make_dataclass(
    "CaseScore", [new], bases=(records.CaseScore,), frozen=True, slots=True
)

records.SCORE_COLUMNS += ("trial_number",)

def similarity(pair):  # Taha and Hanbury, BMC Med Imaging 15 (2015) 29
    a, b = int(pair.reference.sum()), int(pair.prediction.sum())
    return 1 - abs(a - b) / (a + b) if a + b else float("nan")

registry.METRIC_REGISTRY._built_in = {
    **registry.METRIC_REGISTRY._built_in,
    "trial_number": registry.MetricSpec(
        "trial_number", "Trial number", "", registry.Better.HIGHER, 3,
        "how alike both volumes are; 1 is best", "1 - ||A|-|B|| / (|A|+|B|)", "Taha",
        "by hand",
        of_pair=similarity,
    ),
}
registry.METRICS += (registry.METRIC_REGISTRY["trial_number"],)

import numpy as np
import napari_mamamia as mm
from napari_mamamia.cli import main
from napari_mamamia.phantom.data_set import write_data_set

from napari_mamamia.scoring.report import drawing

drawing.draw_now = lambda one: drawing.Drawn(b"", "<svg/>" if one.has_svg else "")  # 4 s less
folder = Path(sys.argv[1])
write_data_set(folder / "data", n_cases=2, shape=(16, 48, 48))
masks = folder / "data" / "segmentations"
words = ["--reference", str(masks / "expert"), "--prediction", str(masks / "automatic")]
sys.argv = ["mamamia", "score", *words, "--out", str(folder / "scores"), "--bootstrap=0"]
try:
    main()
except SystemExit as end:
    assert end.code in (0, 3), end.code  # 3: one case has no prediction

grid = mm.Grid.of_spacing((1, 1, 4), (1.0, 1.0, 1.0))
one, other = np.array([[[1, 1, 1, 0]]], bool), np.array([[[1, 0, 0, 0]]], bool)

from qtpy.QtWidgets import QApplication, QLabel
from qtpy.QtCore import Qt
from napari_mamamia.widgets.batch.results_cases import ResultsModel
from napari_mamamia.widgets.score.page import ScorePage

application = QApplication([])
model = ResultsModel()
sys.path.insert(0, "tools")
import site_pages

found = {
    "library": mm.score(one, other, grid=grid, bootstrap=0, progress=False).cases.to_dict(),
    "measure": mm.metrics.measure(one, other, grid),
    "results": [
        model.headerData(k, Qt.Orientation.Horizontal) for k in range(model.columnCount())
    ],
    "page": [one.text() for one in ScorePage().findChildren(QLabel)],
    "docs": site_pages.metrics_table(),
}
(folder / "found.json").write_text(json.dumps(found, default=str))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What a program with one more metric writes, prints and shows."""
    folder = tmp_path_factory.mktemp("new_metric")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder],
        cwd=TOP,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads((folder / "found.json").read_text()), done.stdout


def test_a_new_metric_is_in_the_table_that_score_writes(shown):
    folder, _, _ = shown
    with (folder / "scores" / "case_scores.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2
    assert all(0 <= float(row["trial_number"]) <= 1 for row in rows)


def test_a_new_metric_is_in_the_terminal_and_in_the_report(shown):
    folder, _, printed = shown
    assert "Trial" in printed
    assert "number" in printed
    report = next((folder / "scores").rglob("*.html")).read_text("utf-8")
    assert '"label":"Trial number"' in report


def test_a_new_metric_is_in_the_window_on_the_page_and_in_the_results(shown):
    _, found, _ = shown
    assert "Trial number" in found["page"]
    assert "Trial number" in found["results"]


def test_a_new_metric_is_in_the_library_and_in_the_docs(shown):
    _, found, _ = shown
    assert found["library"]["trial_number"] == {"case": 0.5}  # 1 - (3 - 1) / (3 + 1)
    assert found["measure"]["trial_number"] == 0.5
    row = next(line for line in found["docs"].splitlines() if "trial_number" in line)
    assert row.endswith(
        "| higher | 1 - \\|\\|A\\|-\\|B\\|\\| / (\\|A\\|+\\|B\\|) | Taha | by hand |"
    )
