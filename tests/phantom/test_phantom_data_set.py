"""A phantom data set on disk: layout, tables, masks, and what is left after a cancel."""

import csv
import hashlib
import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError, SaveConflictError
from napari_mamamia.core.progress import listening
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.data_set.patient_info import read_patient_info
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.phantom import make_phantom, write_data_set
from napari_mamamia.phantom.case_mix import plan_case
from napari_mamamia.phantom.data_set import degraded_mask

SHAPE = (24, 50, 66)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The twelve cases at a coarse grid, and the progress that was reported."""
    root = tmp_path_factory.mktemp("phantoms") / "made here" / "data set"
    seen = []
    with listening(seen.append):
        assert write_data_set(root, shape=SHAPE, seed=1) == root
    return root, seen


def digests(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*.nii.gz"))
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def test_the_folder_is_recognised_as_mama_mia_with_all_its_parts(written):
    data_set = find_data_set(written[0])
    assert data_set.kind == LayoutKind.MAMA_MIA
    assert [case.case_id for case in data_set.cases] == [f"PHANTOM_{k:03d}" for k in range(1, 13)]
    assert data_set.clinical is not None
    assert data_set.splits is not None
    for index, case in enumerate(data_set.cases):
        assert case.problems == ()
        assert case.reference is not None
        assert case.info is not None
        assert (case.automatic is None) == (index % 4 == 3)
        assert len(case.phases) == plan_case(index, 1).spec.n_phases


def test_every_image_of_a_case_shares_one_grid_and_is_int16(written):
    for case in find_data_set(written[0]).cases:
        images = [nib.load(phase.files[0]) for phase in case.phases]
        reference = nib.load(case.reference)
        for image in images:
            assert image.shape == SHAPE[::-1] == reference.shape
            assert image.get_data_dtype() == np.int16
            assert np.array_equal(image.affine, reference.affine)
        codes = "".join(nib.aff2axcodes(images[0].affine))
        assert codes == plan_case(int(case.case_id[-3:]) - 1, 1).spec.orientation


def test_every_reference_marks_what_enhances(written):
    for case in find_data_set(written[0]).cases:
        first, second = (
            np.asanyarray(nib.load(phase.files[0]).dataobj).astype(float)
            for phase in case.phases[:2]
        )
        inside = np.asanyarray(nib.load(case.reference).dataobj) > 0
        assert inside.any()
        assert second[inside].mean() > 1.25 * first[inside].mean()


def test_the_clinical_table_reads_back_with_plausible_values(written):
    cohort = read_clinical(written[0] / "clinical_and_imaging_info.xlsx")
    assert cohort.refused == ()
    assert len(cohort.records) == 12
    for index, record in enumerate(cohort.records):
        spec = plan_case(index, 1).spec
        assert 25 <= record.age <= 90
        assert record.menopausal_status is not None
        assert record.breast_density == spec.breast_density
        assert record.acquisition_times_s == spec.times_s
        assert record.pcr in (True, False)
        assert record.tumour_subtype
        assert record.dataset == "PHANTOM"
        assert record.other["view"] in ("axial", "sagittal")
        assert record.other["num_phases"] == spec.n_phases
        assert record.other["manufacturer"] in ("SIEMENS", "GE", "Philips")
        assert record.other["field_strength"] in (1.5, 3)
    groups = [
        {record.breast_density for record in cohort.records},
        {record.menopausal_status for record in cohort.records},
        {record.age > 50 for record in cohort.records},
        {record.other["site"] for record in cohort.records},
    ]
    assert [len(group) for group in groups] == [4, 3, 2, 3]


def test_a_sagittal_case_is_told_to_show_one_breast(written):
    records = read_clinical(written[0] / "clinical_and_imaging_info.xlsx").by_id()
    assert records["PHANTOM_003"].other["view"] == "sagittal"
    assert records["PHANTOM_003"].other["bilateral_mri"] == 0
    assert records["PHANTOM_001"].other["view"] == "axial"
    assert records["PHANTOM_001"].other["bilateral_mri"] == 1
    assert records["PHANTOM_011"].other["bilateral_mri"] == 0


def test_patient_info_holds_times_and_the_breast_that_holds_the_primary_tumour(written):
    for index, case in enumerate(find_data_set(written[0]).cases):
        assert case.info.name == f"phantom_{index + 1:03d}.json"
        info = read_patient_info(case.info)
        spec = plan_case(index, 1).spec
        assert info.acquisition_times_s == spec.times_s
        image = nib.load(case.reference)
        mask = np.asanyarray(image.dataobj).transpose() > 0
        kept = mask[info.breast_box.slices]
        assert np.count_nonzero(kept) >= 0.8 * np.count_nonzero(mask)
        corners = np.array([info.breast_box.start, info.breast_box.stop])[:, ::-1] - 0.5
        middle = nib.affines.apply_affine(image.affine, corners)[:, 0].mean()
        assert (middle > 0) == (spec.tumours[0].side == "right")
        content = json.loads(case.info.read_text())
        assert content["patient_id"] == case.case_id
        assert content["imaging_data"]["bilateral"] is (index + 1 not in (3, 7, 11, 12))


def test_the_split_names_every_case_once(written):
    with (written[0] / "train_test_splits.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    train = [row["train_split"] for row in rows if row["train_split"]]
    test = [row["test_split"] for row in rows if row["test_split"]]
    assert len(train) == 8
    assert len(test) == 4
    assert sorted(train + test) == [f"PHANTOM_{k:03d}" for k in range(1, 13)]


def test_progress_goes_up_to_its_total(written):
    done = [progress.done for progress in written[1]]
    assert done == sorted(done)
    assert written[1][-1].done == written[1][-1].total == 1200
    assert len({progress.text for progress in written[1]}) > 24


def test_an_automatic_mask_is_near_the_truth_but_not_equal(written):
    dice = []
    for case in find_data_set(written[0]).cases:
        if case.automatic is None:
            continue
        truth = np.asanyarray(nib.load(case.reference).dataobj) > 0
        mask = np.asanyarray(nib.load(case.automatic).dataobj) > 0
        dice.append(2 * np.count_nonzero(truth & mask) / (truth.sum() + mask.sum()))
    assert min(dice) < 0.9
    assert 0.3 < np.median(dice) < 0.97


def test_an_automatic_mask_misses_the_satellites():
    spec = plan_case(7, 0).spec
    phantom = make_phantom(spec)
    mask = degraded_mask(phantom)
    assert mask.array[phantom.lesions == 1].mean() > 0.5
    assert mask.array[phantom.lesions == 3].mean() < 0.5
    assert np.array_equal(mask.array, degraded_mask(phantom).array)


def test_equal_seeds_give_equal_files_and_other_seeds_others(tmp_path):
    shape = (16, 36, 48)
    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        write_data_set(tmp_path / name, n_cases=1, seed=seed, shape=shape)
    one, same, other = (digests(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same
    assert one.keys() == other.keys()
    assert not set(one.values()) & set(other.values())


@pytest.mark.parametrize("steps", [1, 4, 12])
def test_a_cancelled_job_leaves_nothing(tmp_path, steps):
    job = Stepped(write_data_set, tmp_path / "data", n_cases=2, shape=(16, 36, 48))
    for _ in range(steps):
        next(job)
    job.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(SaveConflictError, match="is not empty"):
        write_data_set(tmp_path, n_cases=1)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_an_empty_folder_may_be_filled(tmp_path):
    write_data_set(tmp_path / "data", n_cases=1, shape=(16, 36, 48))
    target = tmp_path / "empty"
    target.mkdir()
    write_data_set(target, n_cases=1, shape=(16, 36, 48))
    assert (target / "train_test_splits.csv").exists()


@pytest.mark.parametrize("n_cases", [0, 2001])
def test_a_senseless_number_of_cases_is_refused(tmp_path, n_cases):
    with pytest.raises(CaseError, match="1 to 2000"):
        write_data_set(tmp_path / "data", n_cases=n_cases)
