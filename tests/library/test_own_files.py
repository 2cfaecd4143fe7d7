"""A script's own files and arrays as cases, and cases as other libraries know them."""

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch.utils.data as torch_data
import torchio as tio
from monai import transforms

import napari_mamamia as mm

AFFINE = np.array([[-0.8, 0, 0, 30], [0, -0.7, 0, 20], [0, 0, 2.5, -40], [0, 0, 0, 1.0]])


@pytest.fixture
def signal() -> np.ndarray:
    """Three phases of 6 x 16 x 20 voxels; a block of 60 voxels takes up contrast."""
    phases = np.random.default_rng(3).integers(80, 120, (3, 6, 16, 20)).astype(np.int16)
    phases[1:, 2:4, 5:10, 8:14] += 300
    return phases


@pytest.fixture
def mask() -> np.ndarray:
    voxels = np.zeros((6, 16, 20), bool)
    voxels[2:4, 5:10, 8:14] = True
    return voxels


@pytest.fixture
def files(tmp_path, signal, mask) -> dict:
    paths = []
    for k, phase in enumerate(signal):
        paths.append(tmp_path / f"p{k}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(phase.T, AFFINE), paths[-1])
    nibabel.save(nibabel.Nifti1Image(mask.T.astype(np.uint8), AFFINE), tmp_path / "m.nii.gz")
    nibabel.save(nibabel.Nifti1Image(signal.T, AFFINE), tmp_path / "dce.nii.gz")
    return {"phases": paths, "mask": tmp_path / "m.nii.gz", "series": tmp_path / "dce.nii.gz"}


def test_case_of_files_has_their_voxels_grid_and_times(files, signal, mask):
    case = mm.Case.from_files(files["phases"], files["mask"], [0, 90, 180], case_id="A")
    assert np.array_equal(case.signal, signal)
    assert np.allclose(case.affine, AFFINE)
    assert case.times_s == (0, 90, 180)
    assert np.array_equal(np.asarray(case.reference), mask)
    assert repr(case) == "Case('A', 3 phases, with a reference)"


def test_case_of_one_4d_file_has_its_phases(files, signal):
    case = mm.Case.from_files(files["series"])
    assert np.array_equal(case.signal, signal)
    assert (case.case_id, case.times_s) == ("dce", (None, None, None))


@pytest.mark.parametrize("place", [{"affine": AFFINE}, {"spacing_mm": (2.5, 0.7, 0.8)}])
def test_case_of_arrays_measures_as_one_of_files(files, signal, mask, place):
    of_files = mm.Case.from_files(files["phases"], files["mask"], [0, 90, 180])
    of_arrays = mm.Case.from_arrays(signal, times_s=[0, 90, 180], mask=mask, **place)
    assert of_arrays.spacing_mm == pytest.approx(of_files.spacing_mm)
    assert np.array_equal(of_arrays.signal, of_files.signal)
    one, other = (mm.kinetics.maps(case)["pe"] for case in (of_files, of_arrays))
    assert np.array_equal(one, other, equal_nan=True)


def test_cases_join_to_a_data_set_that_is_predicted_and_scored(tmp_path, files, signal, mask):
    cases = [
        mm.Case.from_files(files["phases"], files["mask"], [0, 90, 180], case_id="files"),
        mm.Case.from_arrays(signal, affine=AFFINE, mask=mask, case_id="arrays"),
    ]
    data_set = mm.DataSet.from_cases(cases)
    assert data_set.case_ids == ("files", "arrays")
    for case in data_set:
        folder = tmp_path / "masks"
        mm.write_mask(case.reference, folder / f"{case.case_id}.nii.gz")
    scores = mm.score(data_set, tmp_path / "masks", progress=False)
    assert list(scores.cases["dsc"]) == [1.0, 1.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda files, signal: mm.Case.from_files([]),
        lambda files, signal: mm.Case.from_files(3),
        lambda files, signal: mm.Case.from_files([files["phases"][0], 3]),
        lambda files, signal: mm.Case.from_files(files["phases"], times_s=[0, 90]),
        lambda files, signal: mm.Case.from_files(files["phases"], times_s=[0, 90, 90]),
        lambda files, signal: mm.Case.from_files(files["phases"], times_s=[0, "soon", 90]),
        lambda files, signal: mm.Case.from_files([files["series"], files["phases"][0]]),
        lambda files, signal: mm.Case.from_arrays(signal),
        lambda files, signal: mm.Case.from_arrays(signal[0], affine=AFFINE),
        lambda files, signal: mm.Case.from_arrays(signal, affine=np.eye(3)),
        lambda files, signal: mm.Case.from_arrays(signal, spacing_mm=(1, 1)),
        lambda files, signal: mm.Case.from_arrays(signal, spacing_mm=(0, 1, 1)),
        lambda files, signal: mm.Case.from_arrays(signal > 0, affine=AFFINE),
        lambda files, signal: mm.Case.from_files(files["phases"], case_id="../evil"),
        lambda files, signal: mm.Case.from_arrays(signal, affine=AFFINE, case_id="/evil"),
        lambda files, signal: mm.DataSet.from_cases(mm.Case.from_files(files["series"])),
        lambda files, signal: mm.DataSet.from_cases([]),
        lambda files, signal: mm.DataSet.from_cases([files["mask"]]),
        lambda files, signal: mm.DataSet.from_cases(
            [mm.Case.from_files(files["series"]), mm.Case.from_files(files["series"])]
        ),
    ],
)
def test_wrong_arguments_are_refused_as_the_case_is_made(files, signal, make):
    with pytest.raises(mm.ArgumentError):
        make(files, signal)


def test_mask_on_another_grid_is_refused_as_the_case_is_made(tmp_path, files):
    shifted = AFFINE.copy()
    shifted[0, 3] += 5
    nibabel.save(nibabel.Nifti1Image(np.ones((20, 16, 6), np.uint8), shifted), tmp_path / "s.nii")
    with pytest.raises(mm.GridMismatchError):
        mm.Case.from_files(files["phases"], tmp_path / "s.nii")


def test_data_set_gives_slices_lists_and_cases_by_column(tmp_path):
    data_set = mm.make_phantoms(tmp_path / "set", 4, shape=(24, 48, 48), progress=False)
    assert data_set[1:3].case_ids == data_set.case_ids[1:3]
    assert data_set[[3, "phantom_001"]].case_ids == ("PHANTOM_004", "PHANTOM_001")
    strength = data_set.columns["field_strength"]
    assert data_set.where(Field_Strength=3).case_ids == tuple(strength.index[strength == 3])
    assert len(data_set.where(menopausal_status=["pre", "post"])) == 4
    with pytest.raises(mm.ArgumentError, match="field_strength"):
        data_set.where(colour="red")
    with pytest.raises(mm.CaseError, match="from 0 to 3"):
        data_set[[9]]


def test_mask_is_an_array_where_that_is_safe(mask):
    grid = mm.Grid.of_spacing(mask.shape, (2.5, 0.7, 0.8))
    one, other = mm.Mask(grid, mask), mm.Mask(grid, np.roll(mask, 1, axis=1))
    assert np.asarray(one).shape == (6, 16, 20)
    assert one.sum() == 60
    assert (one & other).sum() == 48
    assert (one | other).sum() == 72
    assert (one - other).sum() == 12
    assert (~one).sum() == mask.size - 60
    elsewhere = mm.Mask(mm.Grid.of_spacing(mask.shape, (1, 1, 1)), mask)
    with pytest.raises(mm.GridMismatchError):
        one & elsewhere
    with pytest.raises(TypeError):
        one & mask.tolist()


def test_simpleitk_has_the_same_voxels_at_the_same_places(files, signal):
    image = mm.Case.from_files(files["phases"]).to_simpleitk()[1]
    own = SimpleITK.ReadImage(str(files["phases"][1]))
    assert np.array_equal(SimpleITK.GetArrayFromImage(image), signal[1])
    for voxel in ((0, 0, 0), (19, 15, 5), (7, 2, 3)):
        ours, theirs = (each.TransformIndexToPhysicalPoint(voxel) for each in (image, own))
        assert ours == pytest.approx(theirs, abs=1e-4)


def test_monai_item_equals_what_monai_reads(files):
    item = mm.Case.from_files(files["phases"], files["mask"]).to_monai()
    load = transforms.LoadImage(reader="NibabelReader", ensure_channel_first=True, dtype=None)
    phase, label = load(str(files["phases"][2])), load(str(files["mask"]))
    assert np.array_equal(item["image"][2], phase[0])
    assert np.array_equal(item["label"][0], label[0])
    assert np.allclose(item["image"].affine, phase.affine, atol=1e-5)


def test_torchio_subject_equals_what_torchio_reads(files):
    subject = mm.Case.from_files(files["phases"], files["mask"]).to_torchio()
    theirs = tio.ScalarImage(files["phases"][1])
    assert np.array_equal(subject["dce"].data[1], theirs.data[0])
    assert np.allclose(subject["dce"].affine, theirs.affine, atol=1e-5)
    assert int(subject["mask"].data.sum()) == 60


def test_xarray_has_axes_in_mm_and_times(files, signal):
    array = mm.Case.from_files(files["phases"], times_s=[0, 90, 180]).to_xarray()
    assert array.dims == ("phase", "z", "y", "x")
    assert float(array.sel(z=5.1, method="nearest")[0, 3, 4]) == signal[0, 2, 3, 4]
    assert list(array.time.values) == [0, 90, 180]


def test_torch_loader_reads_the_chosen_phases(files, signal):
    case = mm.Case.from_files(files["phases"], files["mask"])
    loader = torch_data.DataLoader(mm.DataSet.from_cases([case]).to_torch((0, 2)))
    batch = next(iter(loader))
    assert tuple(batch["image"].shape) == (1, 2, 6, 16, 20)
    assert np.array_equal(batch["image"][0, 1], signal[2].astype(np.float32))
    assert int(batch["mask"].sum()) == 60


def test_patients_have_their_visits_in_order_of_time(tmp_path, signal):
    root = tmp_path / "Reconstructed_Datasets" / "NACT-Volumes"
    for patient, date in (("P2", "01-15-2003"), ("P2", "12-20-2002"), ("P1", "03-01-2001")):
        (root / patient / date).mkdir(parents=True)
        for k, phase in enumerate(signal):
            image = nibabel.Nifti1Image(phase.T, AFFINE)
            nibabel.save(image, root / patient / date / f"volume_phase{k}.nii.gz")
    data_set = mm.open_data_set(tmp_path, progress=False)
    assert data_set.layout == "longitudinal-mama-mia"
    visits = {
        patient.name: [visit.name for visit in patient.visits] for patient in data_set.patients
    }
    assert visits == {"P1": ["03-01-2001"], "P2": ["12-20-2002", "01-15-2003"]}
    last = data_set.patients[1].visits[1]
    assert (last.index, last.cases[0].case_id) == (1, "P2_01-15-2003")
    assert np.array_equal(last.cases[0].signal, signal)


def test_sides_of_a_visit_are_one_exam(tmp_path, signal):
    for side in ("left", "right"):
        folder = tmp_path / f"UKA/data_unilateral/U1_{side}"
        folder.mkdir(parents=True)
        for name, phase in zip(("Pre", "Post_1"), signal, strict=False):
            nibabel.save(nibabel.Nifti1Image(phase.T, AFFINE), folder / f"{name}.nii.gz")
    (patient,) = mm.open_data_set(tmp_path, progress=False).patients
    (exam,) = patient.visits[0].exams
    assert list(exam.sides) == ["left", "right"]
    assert exam.left.case_id == "U1_left"
    assert exam.right.case_id == "U1_right"
