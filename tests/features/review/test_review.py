"""A review study in a script, and a model scored against what the study accepted."""

import csv
import json

import numpy as np
import pytest
from tests.review_study import made, opened
from typer.testing import CliRunner

import napari_mamamia as mm
from napari_mamamia.cli.app import app
from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.features.review.services.session import ReviewSession

GRID = mm.Grid.of_spacing((4, 6, 6), (2.0, 1.0, 1.0))
CASES = ("A_1", "A_2", "B_1", "none")


def mask_of(n_rows):
    array = np.zeros(GRID.shape, bool)
    array[1:3, 1 : 1 + n_rows, 1:5] = True
    return mm.Mask(GRID, array)


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """Two cases accepted, one open, one accepted as empty; and a home of its own."""
    folder = tmp_path_factory.mktemp("study")
    study = made(folder, cases=CASES, blinding=ALL_HIDDEN)
    path = folder / "mask.nii.gz"
    mm.write_mask(mask_of(4), path)
    for who in ("ana", "ben"):
        session = ReviewSession(opened(study, folder / who), who, folder / who)
        for at, (task, _) in enumerate(session.queue()):
            if (CASES[at], who) != ("B_1", "ben"):
                session.claim(task)
                session.start(task)
                session.finish(task, None if CASES[at] == "none" else path.read_bytes())
        session.close()
    jo = ReviewSession(opened(study, folder / "jo"), "jo", folder / "jo")
    for view in jo.state.cases:
        if view.state.value == "read":
            jo.accept(view.key)
    jo.close()
    return study


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))


def test_a_study_is_looked_at_in_a_script(studied):
    study = mm.open_study(str(studied))
    assert study.cases["state"].tolist() == [
        *("accepted", "accepted", "second reading needed", "accepted"),
    ]
    assert study.readers.loc["ben", "n_read"] == 3
    assert "accepted 3" in repr(study)
    assert study.status.n_cases == 4
    masks = study.accepted_masks()
    assert list(masks) == ["A_1", "A_2"]
    assert masks["A_1"].grid == GRID
    assert (masks["A_1"].array == mask_of(4).array).all()
    scores = mm.score(masks, {"A_1": mask_of(4), "A_2": mask_of(2)}, bootstrap=0, progress=False)
    # 4 and 2 rows: 2 x 2 / 6
    assert scores.cases["dsc"].tolist() == pytest.approx([1.0, 2 / 3])


def test_agreement_of_a_blind_study_asks_who_it_is_for(studied):
    study = mm.open_study(studied)
    with pytest.raises(mm.CaseError, match="reader=NAME"):
        study.agreement(progress=False)
    found = study.agreement(reader="lea", bootstrap=20, progress=False)
    assert found.masks.dsc.value == 1.0
    assert found.masks.n_both_empty == 1


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(mm.FormatError, match="a review study"):
        mm.open_study(tmp_path)
    with pytest.raises(mm.ArgumentError, match="folder to be a path"):
        mm.open_study(5)


@pytest.mark.usefixtures("quick_figures")
def test_a_model_is_scored_against_what_was_accepted_and_the_rest_is_named(studied, tmp_path):
    for case_id, n_rows in (("A_1", 4), ("A_2", 2), ("B_1", 4)):
        mm.write_mask(mask_of(n_rows), tmp_path / "masks" / f"{case_id}.nii.gz")
    words = ["score", "--prediction", str(tmp_path / "masks"), "--bootstrap", "0"]
    words += ["--out", str(tmp_path / "out")]
    run = CliRunner().invoke
    both = [*words, "--study", str(studied), "--reference", str(tmp_path)]
    for wrong in (words, both):
        assert run(app, wrong).exit_code == 2
    done = run(app, [*words, "--study", str(studied)])
    assert "2 of them not signed: A_1, A_2" in done.output
    assert "not scored: B_1 has no accepted mask: it is second reading needed" in done.output
    assert done.exit_code == 3
    with (tmp_path / "out" / "case_scores.csv").open(newline="") as stream:
        rows = {row["case_id"]: row for row in csv.DictReader(stream)}
    assert float(rows["A_1"]["dsc"]) == 1.0
    assert float(rows["A_2"]["dsc"]) == pytest.approx(2 / 3)
    assert (rows["B_1"]["status"], rows["B_1"]["dsc"]) == ("reference_missing", "")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["parameters"]["reference"] == "accepted-s1"
    again = run(app, [*words, "--study", str(studied), "--resume"])
    assert again.exit_code == 3, again.output


def test_a_study_that_accepted_nothing_is_no_reference(tmp_path):
    study = made(tmp_path)
    mm.write_mask(mask_of(1), tmp_path / "masks" / "A.nii.gz")
    words = ["--study", str(study), "--prediction", str(tmp_path / "masks")]
    done = CliRunner().invoke(app, ["score", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert not (tmp_path / "out").exists()
