"""Eight tasks of a scientist, each written as in a script of their own.

The folder is one that no known layout describes: two visits of each patient, a table, masks.
"""

from concurrent.futures import ThreadPoolExecutor

import nibabel
import numpy as np
import pandas as pd
import pytest
from torch.utils.data import DataLoader

import napari_mamamia as mm

SHAPE = (4, 16, 20)
SPACING = (2.0, 0.7, 0.8)
AFFINE = np.diag([0.8, 0.7, 2.0, 1.0])


def lesion_mask(shift=0):
    mask = np.zeros(SHAPE, bool)
    mask[1:3, 5 + shift : 10 + shift, 8:14] = True
    return mask


def save(path, voxels):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels.T, AFFINE), path)


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Four patients with two visits of three phases; a lesion of 60 voxels takes up contrast."""
    root = tmp_path_factory.mktemp("home") / "trial"
    rng = np.random.default_rng(5)
    for number in range(1, 5):
        for visit in ("T0", "T1"):
            phases = rng.integers(80, 120, (3, *SHAPE)).astype(np.int16)
            phases[1:, lesion_mask()] += 300
            for k, phase in enumerate(phases):
                save(root / f"PAT-{number}/{visit}/dce_{k}.nii.gz", phase)
            save(root / f"PAT-{number}/{visit}/tumor_mask.nii.gz", lesion_mask().astype(np.uint8))
    return root


@pytest.fixture(scope="module")
def data_set(trial):
    return mm.open_data_set(trial, layout="proposed", progress=False)


def test_1_open_my_folder_and_walk_through_patients_and_visits(data_set):
    lines = [
        f"{patient.name} {visit.name}: {len(case.times_s)} phases"
        for patient in data_set.patients
        for visit in patient.visits
        for case in visit.cases
    ]
    assert lines[:3] == ["PAT-1 T0: 3 phases", "PAT-1 T1: 3 phases", "PAT-2 T0: 3 phases"]
    assert len(lines) == 8


def test_2_feed_a_network(data_set):
    batches = list(DataLoader(data_set.to_torch((0, 1)), batch_size=4))
    assert [tuple(batch["image"].shape) for batch in batches] == [(4, 2, *SHAPE)] * 2


def test_3_compare_two_arrays():
    row = mm.metrics.measure(lesion_mask(), lesion_mask(shift=1), spacing=SPACING)
    assert row["dsc"] == pytest.approx(0.8)  # 2 x 48 of 60 + 60 voxels
    assert row["hausdorff_mm"] == pytest.approx(0.7)


@pytest.fixture(scope="module")
def masks(data_set, tmp_path_factory):
    """Masks of two models: one is right, the other is one voxel off in patients 3 and 4."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("good", "poor")}
    for case in data_set:
        is_off = case.case_id.startswith(("PAT-3", "PAT-4"))
        for name, shift in (("good", 0), ("poor", int(is_off))):
            mm.write_mask(
                lesion_mask(shift), folders[name] / f"{case.case_id}.nii.gz", grid=case.grid
            )
    return folders


def read_references(data_set, folder):
    for case in data_set:
        mm.write_mask(lesion_mask(), folder / f"{case.case_id}.nii.gz", grid=case.grid)
    return folder


def test_4_score_a_folder_by_scanner(data_set, masks, tmp_path):
    references = read_references(data_set, tmp_path)
    scores = mm.score(references, masks["poor"], bootstrap=0, progress=False)
    scanner = {case.case_id: "A" if case.case_id < "PAT-3" else "B" for case in data_set}
    table = scores.fairness_by({"scanner": scanner})
    assert table.loc[("scanner", "dsc"), "value"] == pytest.approx(0.2)


def test_5_compare_two_models(data_set, masks, tmp_path):
    references = read_references(data_set, tmp_path)
    good, poor = (
        mm.score(references, masks[name], name=name, bootstrap=0, progress=False)
        for name in ("good", "poor")
    )
    ranking = good.compare(poor).ranking
    assert isinstance(ranking, pd.DataFrame)
    assert good.cohort.loc["mean_dsc", "value"] == 1
    assert poor.cohort.loc["mean_dsc", "value"] == pytest.approx(0.9)


def test_6_kinetics_of_my_own_files(trial):
    folder = trial / "PAT-1/T0"
    case = mm.Case.from_files(
        sorted(folder.glob("dce_*.nii.gz")), folder / "tumor_mask.nii.gz", times_s=[0, 90, 180]
    )
    curve = mm.kinetics.curve(case, case.reference)
    # 300 above a baseline of 80 to 119, mean 100
    assert curve.n_voxels == 60
    assert curve.percent[1] == pytest.approx(300, abs=15)
    assert curve.times_s == (0, 90, 180)


def test_7_write_a_dicom_seg_and_read_it_back(tmp_path):
    study = mm.make_phantom_study(tmp_path / "study", shape=(16, 48, 48), progress=False)
    imported = mm.import_dicom(study, tmp_path / "set", "P001", progress=False)
    case = imported.data_set["P001"]
    drawn = np.zeros(case.grid.shape, bool)
    drawn[1:3, 5:9, 5:9] = True
    mm.export(
        imported.data_set,
        {"P001": drawn},
        tmp_path / "out",
        formats="dicom-seg",
        made_by="manual",
        study=study,
        progress=False,
    )
    seg = next((tmp_path / "out").rglob("*.dcm"))
    assert np.array_equal(mm.read_mask(seg, grid=case.grid).array, drawn)


def test_8_do_it_in_parallel(data_set):
    def segment(case):
        return case.case_id, mm.predict(case, progress=False).mask.volume_mm3

    with ThreadPoolExecutor(2) as pool:
        volumes = dict(pool.map(segment, data_set))
    assert sorted(volumes) == sorted(data_set.case_ids)
    assert all(volume >= 0 for volume in volumes.values())
