"""Values that would be taken for something else, or end in somebody else's error."""

import nibabel
import numpy as np
import pytest

import napari_mamamia as mm


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    place = tmp_path_factory.mktemp("phantoms") / "data"
    return mm.make_phantoms(place, 1, shape=(16, 32, 32), progress=False)


LABELS = ["1", " ", True, float("nan"), float("inf"), [1]]


@pytest.mark.parametrize("label", LABELS, ids=map(str, LABELS))
def test_a_label_that_is_no_number_is_refused_and_never_an_empty_mask(data_set, tmp_path, label):
    masks = data_set.root / "segmentations" / "expert"
    file = next(masks.iterdir())
    calls = [
        lambda: mm.read_mask(file, label=label),
        lambda: mm.score(file, file, label=label, bootstrap=0, progress=False),
        lambda: mm.export(data_set, masks, tmp_path / "out", label=label, progress=False),
    ]
    for call in calls:
        with pytest.raises(mm.ArgumentError, match="expected label to be a number"):
            call()
    assert not (tmp_path / "out").exists()


def test_a_name_means_a_segment_and_a_file_of_values_without_names_is_refused(data_set, tmp_path):
    file = next((data_set.root / "segmentations" / "expert").iterdir())
    mask = mm.read_mask(file)
    two = np.asarray(mm.to_nibabel(mask).dataobj).copy()
    two[0, 0, 0] = 2
    nibabel.save(nibabel.Nifti1Image(two, mm.to_nibabel(mask).affine), tmp_path / "two.nii.gz")
    assert np.array_equal(mm.read_mask(file, label="tumour").array, mask.array)
    with pytest.raises(mm.FormatError, match=r"two\.nii\.gz.*'tumour'.*1, 2 without names"):
        mm.read_mask(tmp_path / "two.nii.gz", label="tumour")


def test_a_label_may_be_a_number_of_numpy(data_set):
    file = next((data_set.root / "segmentations" / "expert").iterdir())
    assert mm.read_mask(file, label=np.uint8(1)).array.sum() > 0
    assert mm.read_mask(file, label=1.0).array.sum() > 0


WRONG = {
    "case_ids": (
        lambda d, out: mm.predict(d, out=out, case_ids=5),
        "expected case_ids to be a string or a list of strings",
    ),
    "formats": (
        lambda d, out: mm.export(d, out, out, formats=5),
        "expected formats to be a string or a list of strings",
    ),
    "time": (lambda d, out: mm.predict(d, out=out, time_limit_s="a"), "positive number of seconds"),
    "click": (lambda d, out: mm.predict(d[0], click=(1.5, 2, 3)), "three whole numbers"),
    "variant": (
        lambda d, out: mm.measure_kinetics(d, out, variant="own"),
        'variant to be "ucsf-extension" or "ucsf-ispy1"',
    ),
    "columns": (
        lambda d, out: mm.score(d.root, d.root, columns={"age": "Age"}, progress=False),
        "columns can be used only with a clinical table",
    ),
    "click array": (
        lambda d, out: mm.predict(d, out=out, click=np.array([1, 2, 3])),
        "click applies only to one case",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_refused_by_its_argument(data_set, tmp_path, name):
    call, text = WRONG[name]
    with pytest.raises(mm.ArgumentError, match=text):
        call(data_set, tmp_path / "out")
    assert not (tmp_path / "out").exists()
