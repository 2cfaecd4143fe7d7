"""The library gives the numbers of the command line, which runs in a process of its own."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.conftest import contents

import napari_mamamia as mm

pytestmark = pytest.mark.door

OWN = {"created"}
SHAPE = (24, 64, 64)


def _command(*words):
    done = mamamia(*words, has_figures=False)
    assert done.returncode in (0, 3), done.stderr
    return done


def _json(path):
    content = json.loads(path.read_text("utf-8"))
    return {name: value for name, value in content.items() if name not in OWN}


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantoms") / "phantoms"
    return mm.make_phantoms(folder, 3, shape=SHAPE, progress=False)


@pytest.mark.usefixtures("quick_figures")
def test_scores_of_two_models_are_byte_for_byte_those_of_mamamia_score(phantoms, tmp_path):
    reference = phantoms.root / "segmentations" / "expert"
    first = phantoms.root / "segmentations" / "automatic"
    second = tmp_path / "shifted"
    for case in phantoms:
        mask = np.roll(case.reference.array, 1, axis=2)
        mm.write_mask(mask, second / f"{case.case_id}.nii.gz", grid=case.grid)
    given = ["--clinical", phantoms.clinical, "--bootstrap", "200", "--seed", "7"]
    folders = [f"--prediction={first}", f"--prediction={second}"]
    _command("score", "--reference", reference, *folders, *given, "--out", tmp_path / "theirs")
    scores = [
        mm.score(
            reference, model, clinical=phantoms.clinical, bootstrap=200, seed=7, progress=False
        )
        for model in (first, second)
    ]
    scores[0].compare(scores[1]).save(tmp_path / "ours", progress=False)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for name in ("automatic", "shifted"):
        table = Path(name) / "case_scores.csv"
        assert (ours / table).read_bytes() == (theirs / table).read_bytes()
        assert _json(ours / name / "summary.json") == _json(theirs / name / "summary.json")
    assert _json(ours / "comparison.json") == _json(theirs / "comparison.json")
    in_memory = mm.score(
        {case.case_id: case.reference for case in phantoms},
        {case.case_id: mm.read_mask(second / f"{case.case_id}.nii.gz") for case in phantoms},
        clinical=phantoms, bootstrap=200, seed=7, name="shifted", progress=False,
    )  # fmt: skip
    own = json.loads(json.dumps(in_memory.summary))
    wanted = _json(theirs / "shifted" / "summary.json")
    assert {name: own[name] for name in wanted} == wanted


def test_predictions_and_kinetics_are_those_of_the_commands(data_set_of_module, tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    _command("predict", data_set_of_module, "--out", theirs / "masks")
    _command("kinetics", data_set_of_module, "--out", theirs / "kinetics", "--case", "A_1")
    data_set = mm.open_data_set(data_set_of_module, progress=False)
    made = mm.predict(data_set, out=ours / "masks", progress=False)
    for case_id in data_set.case_ids:
        name = Path("masks") / f"{case_id}.nii.gz"
        assert contents(ours / name) == contents(theirs / name)
    one = mm.predict(data_set["A_1"], progress=False).mask
    assert np.array_equal(one.array, made["A_1"].array)
    mm.measure_kinetics(data_set, ours / "kinetics", case_ids="A_1", progress=False)
    table = Path("kinetics") / "kinetics.csv"
    assert (ours / table).read_bytes() == (theirs / table).read_bytes()
