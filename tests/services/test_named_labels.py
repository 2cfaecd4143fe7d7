"""The tumour's label of nnU-Net's dataset.json is applied where masks are scored and opened."""

import json

import nibabel
import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.case.open_case import load_case, load_reference
from napari_mamamia.services.score.score import find_pairs, score_pairs
from napari_mamamia.services.score.settings import ScoreSettings

LABELS = {"background": 0, "breast": 1, "tumour": 2}


def save(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)


def write_names(folder, labels):
    names = {"channel_names": {"0": "pre", "1": "post1"}, "labels": labels}
    (folder / "dataset.json").write_text(json.dumps(names))


@pytest.fixture
def raw(tmp_path):
    """A raw data set of nnU-Net: breast 1 in 24 voxels, tumour 2 in 8 voxels."""
    values = np.zeros((4, 4, 4), np.uint8)
    values[:2] = 1
    values[0, :2] = 2
    for channel in range(2):
        save(tmp_path / f"raw/imagesTr/c1_{channel:04}.nii.gz", values.astype(np.int16))
    save(tmp_path / "raw/labelsTr/c1.nii.gz", values)
    write_names(tmp_path / "raw", LABELS)
    return tmp_path / "raw"


def score(reference, prediction, **settings):
    settings = ScoreSettings(n_resamples=0, with_report=False, **settings)
    (row,) = score_pairs("m", find_pairs(reference, prediction), settings, None).model.rows
    return row


def test_each_folder_is_scored_by_its_own_names(raw, tmp_path):
    binary = np.zeros((4, 4, 4), np.uint8)
    binary[0, 0] = 1
    save(tmp_path / "own/c1.nii.gz", binary)
    write_names(tmp_path / "own", {"background": 0, "tumour": 1})
    row = score(raw / "labelsTr", tmp_path / "own")
    assert row.volume_reference_mm3 == 8
    assert row.dsc == pytest.approx(2 * 4 / (8 + 4))


def test_predictions_without_names_are_refused_until_a_label_is_chosen(raw, tmp_path):
    values = np.zeros((4, 4, 4), np.uint8)
    values[0, 0], values[3] = 2, 1
    save(tmp_path / "plain/c1.nii.gz", values)
    with pytest.raises(FormatError) as refusal:
        score(raw / "labelsTr", tmp_path / "plain")
    assert refusal.value.remedies[0].values == ("2",)
    assert score(raw / "labelsTr", tmp_path / "plain", label=2).dsc == pytest.approx(8 / 12)


def test_reference_of_an_opened_case_is_the_tumour(raw):
    (files,) = find_data_set(raw).cases
    case = load_case(files)
    assert load_reference(files.reference, files, case).mask().array.sum() == 8


def test_ambiguous_names_are_refused_where_a_reference_is_opened(raw):
    write_names(raw, {"background": 0, "lesion a": 1, "lesion b": 2})
    (files,) = find_data_set(raw).cases
    case = load_case(files)
    with pytest.raises(FormatError) as refusal:
        load_reference(files.reference, files, case)
    assert len(refusal.value.remedies) == 2


def test_label_of_a_described_layout_is_the_tumour(raw, tmp_path):
    (raw / "dataset.json").unlink()
    layout = tmp_path / "mine.toml"
    layout.write_text(
        '[mine]\nimage = [{path = "imagesTr/{patient}_{phase:nnnn}"}]\n'
        'mask = [{path = "labelsTr/{patient}", name = "x", label = 2, reference = true}]\n'
    )
    (files,) = find_data_set(raw, str(layout)).cases
    assert load_reference(files.reference, files, load_case(files)).mask().array.sum() == 8


def describe(root, label):
    """Write a layout next to a data set that gives its tumour a value."""
    (root / "dataset.json").unlink(missing_ok=True)
    root.with_name("raw.layout.toml").write_text(
        '[mine]\nimage = [{path = "imagesTr/{patient}_{phase:nnnn}"}]\n'
        'mask = [{path = "labelsTr/{patient}", name = "x", reference = true, '
        f"label = {label}}}]\n"
    )


@pytest.mark.parametrize("reference", ["raw", "raw/labelsTr"])
def test_label_of_an_own_layout_is_scored(raw, tmp_path, reference):
    """2 of 8 tumour voxels are predicted, and no voxel of the breast counts."""
    describe(raw, 2)
    binary = np.zeros((4, 4, 4), np.uint8)
    binary[0, 0, :2] = 1
    save(tmp_path / "own/c1.nii.gz", binary)
    write_names(tmp_path / "own", {"background": 0, "tumour": 1})
    row = score(tmp_path / reference, tmp_path / "own")
    assert row.volume_reference_mm3 == 8
    assert row.dsc == pytest.approx(2 * 2 / (8 + 2))


def test_label_of_an_own_layout_that_no_mask_has_is_refused(raw, tmp_path):
    describe(raw, 7)
    save(tmp_path / "own/c1.nii.gz", np.ones((4, 4, 4), np.uint8))
    with pytest.raises(FormatError, match=r"expected the value 7 .* found 1, 2"):
        score(raw / "labelsTr", tmp_path / "own")


def test_a_mask_without_the_label_is_an_empty_tumour_if_another_has_it(raw, tmp_path):
    describe(raw, 2)
    save(raw / "labelsTr/b1.nii.gz", np.ones((4, 4, 4), np.uint8))
    for case in ("b1", "c1"):
        save(tmp_path / f"own/{case}.nii.gz", np.ones((4, 4, 4), np.uint8))
    write_names(tmp_path / "own", {"background": 0, "tumour": 1})
    settings = ScoreSettings(n_resamples=0, with_report=False)
    pairs = find_pairs(raw / "labelsTr", tmp_path / "own")
    rows = score_pairs("m", pairs, settings, None).model.rows
    assert [row.volume_reference_mm3 for row in rows] == [0, 8]


@pytest.mark.parametrize("label", ["0", "-1", '"2"', "true"])
def test_a_label_that_no_mask_can_have_is_refused(raw, label):
    describe(raw, label)
    with pytest.raises(FormatError, match="label"):
        find_data_set(raw)
