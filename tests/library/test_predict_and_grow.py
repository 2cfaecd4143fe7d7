"""`mm.predict` and `mm.grow`: one case, a data set, and what is refused."""

import json
import shutil
from contextlib import nullcontext

import numpy as np
import pytest

import napari_mamamia as mm

BLOB = (4, 17, 23)
BOX = ((2, 12, 18), (7, 22, 28))


@pytest.fixture(scope="module")
def data_set(data_set_of_module):
    return mm.open_data_set(data_set_of_module, progress=False)


@pytest.fixture(scope="module")
def predictions(data_set, tmp_path_factory):
    return mm.predict(data_set, out=tmp_path_factory.mktemp("out") / "kinetic", progress=False)


def test_a_case_gives_a_mask_with_its_history_and_writing_it_keeps_that(data_set, tmp_path):
    found = mm.predict(data_set["A_1"], progress=False)
    assert mm.metrics.dice(data_set["A_1"].reference, found.mask) > 0.9
    assert repr(found).startswith("Prediction('A_1', Mask(0.1")
    mm.write_mask(found.mask, tmp_path / "A_1.nii.gz")
    assert json.loads((tmp_path / "A_1.json").read_text())["name"] == "kinetic"


def test_a_data_set_gives_a_folder_that_score_takes_and_masks_by_id(data_set, predictions):
    assert predictions.cases.index.tolist() == ["A_1", "A_2", "B_1"]
    assert predictions.failures == ()
    assert predictions["A_2"].volume_mm3 / 1000 == predictions.cases.loc["A_2", "volume_ml"]
    scores = mm.score(data_set, predictions, bootstrap=0, progress=False)
    assert scores.name == "kinetic"
    assert (scores.cases["dsc"] > 0.9).all()
    assert "not a trained model" in repr(predictions)
    assert "<td>" in predictions._repr_html_()


def test_a_folder_with_results_is_refused_gone_on_with_or_replaced(data_set, predictions):
    before = (predictions.folder / "A_1.nii.gz").stat().st_mtime_ns
    with pytest.raises(mm.SaveConflictError):
        mm.predict(data_set, out=predictions, progress=False)
    again = mm.predict(data_set, out=predictions, existing="resume", progress=False)
    assert "3 were already there" in repr(again)
    assert (predictions.folder / "A_1.nii.gz").stat().st_mtime_ns == before


def test_a_damaged_case_is_named_and_the_rest_goes_on(small_data_set, tmp_path):
    path = small_data_set / "images" / "A_2" / "A_2_0001.nii.gz"
    path.write_bytes(path.read_bytes()[:200])
    data_set = mm.open_data_set(small_data_set, progress=False)
    found = mm.predict(data_set, out=tmp_path / "out", progress=False)
    assert found.cases.index.tolist() == ["A_1", "B_1"]
    assert [failure.case_id for failure in found.failures] == ["A_2"]
    with pytest.raises(mm.CaseError, match="A_2_0001"):
        found["A_2"]


def test_ctrl_c_while_a_data_set_is_predicted_leaves_whole_masks_and_goes_on(
    data_set, tmp_path, monkeypatch
):
    from napari_mamamia.library import progress

    real, seen = progress._show_bar, []

    def stop_at_second(step):
        seen.append(step)
        if len(list((tmp_path / "out").glob("*.nii.gz"))) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress, "_show_bar", lambda wanted: nullcontext(stop_at_second))
    with pytest.raises(KeyboardInterrupt):
        mm.predict(data_set, out=tmp_path / "out", progress=False)
    monkeypatch.setattr(progress, "_show_bar", real)
    assert seen
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"A_1.nii.gz", "A_1.json"} <= names
    assert not [name for name in names if name.startswith((".", "B_1"))]
    mm.predict(data_set, out=tmp_path / "out", existing="resume", progress=False)
    assert len(list((tmp_path / "out").glob("*.nii.gz"))) == 3


WRONG = {
    "no case": (lambda d: mm.predict("A_1"), mm.ArgumentError, "a case or a data set"),
    "no model": (lambda d: mm.predict(d[0], "kinetik"), mm.ModelError, "kinetik"),
    "model is None": (lambda d: mm.predict(d[0], None), mm.ArgumentError, "model to be a path"),
    "no folder": (lambda d: mm.predict(d), mm.ArgumentError, "pass out=FOLDER"),
    "a folder for a case": (
        lambda d: mm.predict(d[0], out="x"),
        mm.ArgumentError,
        "out applies only to a",
    ),
    "a click on a set": (
        lambda d: mm.predict(d, out="x", click=BLOB),
        mm.ArgumentError,
        "click applies only to one case",
    ),
    "two prompts": (lambda d: mm.predict(d[0], click=BLOB, box=BOX), mm.ArgumentError, "got both"),
    "outside": (lambda d: mm.predict(d[0], click=(99, 0, 0)), mm.ArgumentError, "inside"),
    "two numbers": (lambda d: mm.predict(d[0], click=(1, 2)), mm.ArgumentError, "three whole"),
    "a box of nothing": (
        lambda d: mm.predict(d[0], box=((1, 1, 1), (1, 1, 1))),
        mm.ArgumentError,
        "the voxel after the last",
    ),
    "no device": (lambda d: mm.predict(d[0], device="gpu"), mm.ArgumentError, '"cuda"'),
    "choices of a network": (lambda d: mm.predict(d[0], fast=True), mm.ModelError, "trained model"),
    "an unknown id": (lambda d: mm.predict(d, out="x", case_ids="C"), mm.CaseError, "a case 'C'"),
    "no ids": (
        lambda d: mm.predict(d, out="x", case_ids=[]),
        mm.ArgumentError,
        "at least one case id",
    ),
    "workers": (lambda d: mm.predict(d, out="x", workers=-1), mm.ArgumentError, "processes"),
    "existing": (lambda d: mm.predict(d, out="x", existing="yes"), mm.ArgumentError, '"resume"'),
    "its own images": (
        lambda d: mm.predict(d, out=d.root / "images", existing="overwrite", progress=False),
        mm.SaveConflictError,
        "images",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_refused_and_writes_nothing(data_set, name, tmp_path, monkeypatch):
    call, kind, said = WRONG[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=said):
        call(data_set)
    assert list(tmp_path.iterdir()) == []


STARTS = {
    "click": {"click": BLOB},
    "box": {"box": BOX},
    "outline": {"outline": None},
    "mask": {"mask": None},
}


@pytest.mark.parametrize("kind", STARTS)
def test_each_start_grows_to_the_blob(data_set, kind):
    case = data_set["A_1"]
    start = dict(STARTS[kind])
    if kind == "outline":
        start = {"outline": mm.Outline(0, 4, case.reference.array[4])}
    if kind == "mask":
        start = {"mask": np.roll(case.reference.array, 1, axis=2)}
    found = mm.grow(case, **start, progress=False)
    assert mm.metrics.dice(case.reference, found.mask) > 0.85
    assert found.mask.grid == case.grid


GROW_WRONG = {
    "nothing": ({}, mm.ArgumentError, "got none"),
    "two": ({"click": BLOB, "box": BOX}, mm.ArgumentError, "click, box"),
    "outside": ({"click": (0, 0, 999)}, mm.ArgumentError, "inside"),
    "empty mask": ({"mask": np.zeros((8, 32, 48), bool)}, mm.CaseError, "mask of .* is empty"),
    "probabilities": ({"mask": np.full((8, 32, 48), 0.3)}, mm.ArgumentError, "threshold"),
    "other shape": ({"mask": np.ones((2, 2, 2), bool)}, mm.GridMismatchError, "shape"),
    "no outline": ({"outline": [1]}, mm.ArgumentError, r"Outline\(axis"),
    "empty outline": (
        {"outline": mm.Outline(0, 4, np.zeros((32, 48), bool))},
        mm.CaseError,
        "one voxel",
    ),
    "outline elsewhere": (
        {"outline": mm.Outline(0, 99, np.ones((32, 48), bool))},
        mm.CaseError,
        "plane 99",
    ),
}


@pytest.mark.parametrize("name", GROW_WRONG)
def test_a_start_that_cannot_be_meant_is_refused(data_set, name):
    given, kind, said = GROW_WRONG[name]
    with pytest.raises(kind, match=said):
        mm.grow(data_set["A_1"], **given, progress=False)
    with pytest.raises(mm.ArgumentError, match="expected a case"):
        mm.grow("A_1", click=BLOB)


def test_a_model_whose_extra_is_missing_says_what_to_install(data_set, tmp_path, monkeypatch):
    from napari_mamamia.library import predict

    def missing(*given, **named):
        raise mm.MissingExtraError("torch", "segment")

    monkeypatch.setattr(predict, "open_model", missing)
    with pytest.raises(mm.MissingExtraError, match=r"napari-mamamia\[segment\]"):
        mm.predict(data_set[0], "some network")


def test_a_read_only_copy_of_a_data_set_is_enough(data_set_of_module, tmp_path):
    copy = shutil.copytree(data_set_of_module, tmp_path / "copy")
    before = sorted(path.relative_to(copy) for path in copy.rglob("*"))
    data_set = mm.open_data_set(copy, progress=False)
    mm.predict(data_set["A_1"], progress=False)
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == before


def test_what_predict_and_grow_return_stands_wherever_a_mask_does(data_set, tmp_path):
    case = data_set["A_1"]
    found = mm.predict(case, progress=False)
    grown = mm.grow(case, mask=found, progress=False)
    assert mm.metrics.dice(found, found.mask) == 1
    assert mm.score(case, grown, bootstrap=0, progress=False).cases["dsc"].item() > 0.85
    assert mm.kinetics.ftv(case, found).volume_cc == mm.kinetics.ftv(case, found.mask).volume_cc
    mm.write_mask(found, tmp_path / "A_1.nii.gz")
    assert (tmp_path / "A_1.json").is_file()
    with pytest.raises(mm.ArgumentError, match=r"pass `case\.reference`"):
        mm.metrics.dice(case, found)
