"""`mm.score_detection`: tables in memory, folders of masks, what it says and saves."""

import json

import numpy as np
import pandas as pd
import pytest

import napari_mamamia as mm

pytestmark = pytest.mark.usefixtures("quick_figures")

BOX = {"case_id": "A", "x1": 0, "x2": 30, "y1": 0, "y2": 20, "z1": 0, "z2": 20}
LESIONS = pd.DataFrame([BOX, BOX | {"x1": 50, "x2": 80}])
BOXES = pd.DataFrame([BOX | {"score": 0.9}, BOX | {"case_id": "B", "score": 0.4}])
CASES = pd.DataFrame({"case_id": ["A", "B"], "centre": ["x", "y"]})


def scored(**more):
    return mm.score_detection(LESIONS, BOXES, cases=CASES, bootstrap=0, progress=False, **more)


def test_frames_are_scored_and_come_back_as_frames():
    found = scored()
    assert (found.froc, found.numbers["n_false_positives"]) == (0.5, 1)
    assert found.lesions["found"].tolist() == ["yes", "no"]
    assert found.boxes["outcome"].tolist() == ["true", "false"]
    assert set(found.curve["curve"]) == {"froc", "strict", "reference-code", "paper-eq3"}
    assert "Matching greedy-score, box-iou at least 0.1" in repr(found)
    assert "1 of 2 lesions found" in found._repr_html_()


def test_what_is_saved_is_what_the_command_writes(tmp_path):
    folder = scored(matching="hungarian").save(tmp_path / "out", progress=False)
    kept = json.loads((folder / "detection.json").read_text())
    assert (kept["matching"], kept["froc"]["score"]) == ("hungarian", 0.5)
    assert (folder / "report.html").exists()
    with pytest.raises(mm.SaveConflictError, match='existing="overwrite"'):
        scored().save(folder, progress=False)


def test_folders_of_masks_are_scored(tmp_path):
    grid = mm.Grid.of_spacing((4, 10, 10), (2.0, 1.0, 1.0))
    mask = np.zeros((4, 10, 10), bool)
    mask[1:3, 2:6, 2:6] = True
    for folder in ("r", "p"):
        mm.write_mask(mask, tmp_path / folder / "A.nii.gz", grid=grid)
    found = mm.score_detection(tmp_path / "r", tmp_path / "p", bootstrap=0, progress=False)
    assert np.isnan(found.froc)
    assert found.numbers["n_true_positives"] == 1
    assert "one operating point" in found.numbers["reason"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"matching": "best"}, 'matching to be one of "greedy-score", "hungarian", "any-overlap"'),
        ({"iou": 2.0}, "at most 1"),
        ({"iou": "0.1"}, "iou to be a number"),
        ({"bootstrap": 1.5}, "a whole number"),
        ({"cases": None}, "a table of all cases"),
        ({"overlap": "mask-iou"}, "leave out overlap"),
        ({"label": 2, "probability": "p"}, "leave out label, probability"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_argument(more, said):
    given = {"cases": CASES, "bootstrap": 0, "progress": False} | more
    with pytest.raises(mm.ArgumentError, match=said):
        mm.score_detection(LESIONS, BOXES, **given)


def test_the_loss_is_public():
    made = mm.risk_adjusted_focal([0.5, 1.2], [True, False], [12.0, 120.0], "reference-code")
    assert made.loss == pytest.approx((made.weighted).sum())


def test_the_counts_of_lesions_say_their_rule():
    truth, guess = [[[0, 1, 1, 0]]], [[[0, 0, 1, 0]]]
    counts = mm.metrics.any_overlap_lesion_counts(truth, guess)
    assert (counts, counts.matching) == (mm.metrics.lesion_counts(truth, guess), "any-overlap")
