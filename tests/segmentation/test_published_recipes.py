"""Recipes of published pipelines beside those pipelines, written again with their own libraries.

What is compared with follows the published programs step by step with SimpleITK, nibabel, SciPy and
nnunetv2's own predictor: FraunhoferMEVIS/MAMA-MIA-Challange-FME 19c0f9d, code_submission_7 and
sample_code_submission; VICTORIA-project/MAMA-MIA_Challenge ce6d8bb, preprocessing and
postprocessing. Weights are random: equality of masks is what is shown, not their worth. The case is
oblique, with slices three times as thick as pixels, so that what counts as thick is decided in the
last places of the header's numbers, and its patient file names a box around one breast.
"""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from scipy import ndimage

from napari_mamamia.segmentation.model.recipe import preset
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.predict.cases import predict_data_set

torch = pytest.importorskip("torch")
pytest.importorskip("nnunetv2")
sitk = pytest.importorskip("SimpleITK")
pytestmark = [pytest.mark.parity, pytest.mark.door, pytest.mark.filterwarnings("ignore")]

SHAPE = (17, 40, 44)
BOX = ((2, 15), (5, 36), (21, 43))
BODY = 130


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def oblique_affine():
    """Return voxels of 0.8 x 0.8 x 2.4 mm, turned by 12 degrees about x and 7 about z."""
    a, b = np.radians(12), np.radians(7)
    about_x = [[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]]
    about_z = [[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]]
    affine = np.eye(4)
    affine[:3, :3] = np.array(about_z) @ np.array(about_x) @ np.diag([-0.8, 0.8, 2.4])
    affine[:3, 3] = (41.5, -22.25, 10.0)
    return affine


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    """Return a MAMA-MIA folder with the case OBL_1: a body, a heart and a lesion that enhance."""
    root = tmp_path_factory.mktemp("published") / "set"
    folder = root / "images" / "OBL_1"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(12)
    z, y, x = np.indices(SHAPE)
    body = (x > 3) & (y > 2) & (y < 38)
    lesion = (z - 8) ** 2 * 9 + (y - 15) ** 2 + (x - 33) ** 2 < 40
    heart = (z - 8) ** 2 * 4 + (y - 30) ** 2 + (x - 10) ** 2 < 60
    for phase in range(4):
        volume = rng.normal(20, 8, SHAPE) + BODY * body + 30 * phase * rng.random(SHAPE)
        volume += min(phase, 2) * 70 * (lesion | heart)
        volume[:, :2] = 0
        image = nib.Nifti1Image(np.clip(volume, 0, None).astype(np.int16).T, oblique_affine())
        image.header.set_xyzt_units("mm", "sec")
        nib.save(image, folder / f"OBL_1_{phase:04d}.nii.gz")
    coordinates = {
        f"{axis}_{end}": side[k]
        for axis, side in zip("xyz", BOX, strict=True)
        for k, end in enumerate(("min", "max"))
    }
    info = root / "patient_info_files" / "obl_1.json"
    info.parent.mkdir()
    info.write_text(json.dumps({"primary_lesion": {"breast_coordinates": coordinates}}))
    return root


def write_model(made, folder: Path, recipe: str, **spec) -> Path:
    root = made.write_model(folder, made.Spec(**{"mirror": (0, 1, 2), **spec}))
    wanted = preset(recipe).checkpoint or "checkpoint_final.pth"
    for final in root.glob("fold_*/checkpoint_final.pth"):
        if wanted != final.name:
            shutil.move(final, final.with_name(wanted))
    return root


def our_mask(data_set: Path, root: Path, recipe: str, out: Path) -> np.ndarray:
    """Return the mask that the command gives, run as a user types it."""
    command = [Path(sysconfig.get_path("scripts")) / "mamamia", "predict", data_set]
    asked = ["--model", root, "--recipe", recipe, "--out", out, "--threads", "1"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sitk.GetArrayFromImage(sitk.ReadImage(str(out / "OBL_1.nii.gz")))


def stock_masks(root: Path, inputs: list[Path], out: Path, checkpoint: str, folds) -> np.ndarray:
    """Return the mask that nnunetv2's own file predictor makes of one case's channels."""
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor

    predictor = nnUNetPredictor(
        tile_step_size=0.5,
        use_gaussian=True,
        use_mirroring=True,
        perform_everything_on_device=False,
        device=torch.device("cpu"),
        allow_tqdm=False,
    )
    predictor.initialize_from_trained_model_folder(str(root), folds, checkpoint)
    out.mkdir()
    predictor.predict_from_files_sequential(
        [[str(path) for path in inputs]], str(out), save_probabilities=False, overwrite=True
    )
    return next(out.glob("*.nii.gz"))


def in_box(labels: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(labels)
    inside = tuple(slice(*side) for side in BOX)
    kept[inside] = labels[inside]
    return kept


def phases(data_set: Path) -> list[Path]:
    return sorted((data_set / "images" / "OBL_1").glob("*.nii.gz"))


def test_the_recipe_of_the_sample_submission_gives_its_mask(data_set, made, tmp_path):
    root = write_model(made, tmp_path, "mama-mia-sample", channels=("post1",), seed=1)
    given = tmp_path / "in" / "OBL_1_0001_0000.nii.gz"
    given.parent.mkdir()
    shutil.copy(phases(data_set)[1], given)
    file = stock_masks(root, [given], tmp_path / "stock", "checkpoint_final.pth", (0,))
    expected = in_box(sitk.GetArrayFromImage(sitk.ReadImage(str(file))))
    ours = our_mask(data_set, root, "mama-mia-sample", tmp_path / "ours")
    assert 200 < np.count_nonzero(expected) < 5000
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.night  # by day: the sample submission's recipe; the steps of FME in test_recipe
def test_the_recipe_fme_gives_its_mask_cut_with_the_cases_own_box(data_set, made, tmp_path):
    root = write_model(
        made, tmp_path, "fme", channels=("sub",), folds=tuple("01234"), residual=True, seed=4,
        mirror=(2,),
    )  # fmt: skip
    pre, post = (nib.load(path) for path in phases(data_set)[:2])
    difference = post.get_fdata().astype(np.int16) - pre.get_fdata().astype(np.int16)
    image = nib.Nifti1Image(difference.astype(np.int16), post.affine, post.header)
    image.set_data_dtype(np.int16)
    given = tmp_path / "in" / "OBL_1_0001_0000.nii.gz"
    given.parent.mkdir()
    nib.save(image, given)
    file = stock_masks(root, [given], tmp_path / "stock", "checkpoint_best.pth", (0, 1, 2, 3, 4))
    raw = sitk.GetArrayFromImage(sitk.ReadImage(str(file)))
    parts, count = ndimage.label(in_box(raw), ndimage.generate_binary_structure(3, 3))
    assert count > 1
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    expected = (parts == np.argmax(sizes)).astype(np.uint8)
    ours = our_mask(data_set, root, "fme", tmp_path / "ours")
    assert expected.sum() < np.count_nonzero(raw)
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.night
def test_the_recipe_vicorob_gives_its_mask(data_set, made, tmp_path):
    root = write_model(
        made, tmp_path, "vicorob", channels=("p0", "p1", "p2"), norms=("NoNormalization",) * 3,
        residual=True, seed=5,
    )  # fmt: skip
    images, origin = [], None
    for path in phases(data_set)[:3]:
        image = sitk.ReadImage(str(path), sitk.sitkFloat32)
        (z0, z1), (y0, y1), (x0, x1) = BOX
        cut = sitk.GetImageFromArray(sitk.GetArrayFromImage(image)[z0:z1, y0:y1, x0:x1])
        origin = image.TransformIndexToPhysicalPoint((x0, y0, z0))
        cut.SetSpacing(image.GetSpacing())
        cut.SetDirection(image.GetDirection())
        cut.SetOrigin(origin)
        images.append(cut)
    before = sitk.GetArrayFromImage(images[0])
    mean, std = np.mean(before), np.std(before)
    given = []
    for k, cut in enumerate(images):
        values = sitk.GetArrayFromImage(cut).ravel()
        low, high = np.percentile(values[values != 0], (0.1, 99.9))
        clipped = sitk.Clamp(cut, sitk.sitkFloat32, float(low), float(high))
        normal = sitk.GetImageFromArray((sitk.GetArrayFromImage(clipped) - mean) / std)
        normal.CopyInformation(cut)
        size = [
            round(n * (s + 1e-5) / 1.0)
            for n, s in zip(cut.GetSize(), cut.GetSpacing(), strict=True)
        ]
        fine = sitk.Resample(
            normal, size, sitk.Transform(), sitk.sitkBSpline, cut.GetOrigin(), (1.0, 1.0, 1.0),
            cut.GetDirection(), 0.0, normal.GetPixelID(),
        )  # fmt: skip
        path = tmp_path / "in" / f"OBL_1_{k:04d}.nii.gz"
        path.parent.mkdir(exist_ok=True)
        sitk.WriteImage(fine, str(path))
        given.append(path)
    file = stock_masks(root, given, tmp_path / "stock", "checkpoint_final.pth", (0,))
    small = sitk.ReadImage(str(file), sitk.sitkUInt8)
    whole = sitk.ReadImage(str(phases(data_set)[1]))
    spacing = whole.GetSpacing()
    size = [round(n / s) for n, s in zip(small.GetSize(), spacing, strict=True)]
    back = sitk.Resample(
        small, size, sitk.Transform(), sitk.sitkNearestNeighbor, small.GetOrigin(), spacing,
        small.GetDirection(), 0, sitk.sitkUInt8,
    )  # fmt: skip
    back.SetOrigin(origin)
    target = sitk.Image(whole.GetSize(), sitk.sitkUInt8)
    target.CopyInformation(whole)
    index = whole.TransformPhysicalPointToIndex(origin)
    pasted = sitk.Paste(target, back, back.GetSize(), [0, 0, 0], index)
    expected = sitk.GetArrayFromImage(pasted)
    ours = our_mask(data_set, root, "vicorob", tmp_path / "ours")
    assert 200 < np.count_nonzero(expected) < 8000
    # splines are evaluated by two libraries in single precision: single ties may fall otherwise
    different = int(np.count_nonzero(ours != expected))
    assert different <= 3, f"{different} of {np.count_nonzero(expected)} voxels"


def test_a_case_without_coordinates_says_that_its_breast_was_looked_for(
    small_data_set, made, tmp_path
):
    from napari_mamamia.segmentation.run.planned import PlannedSegmenter

    root = made.write_model(tmp_path, made.Spec(channels=("a", "b", "c"), mirror=None))
    segmenter = PlannedSegmenter(recognise_model(root), recipe=preset("mic"))
    opened = open_data_set(small_data_set)
    summary = predict_data_set(opened, segmenter, tmp_path / "out", ["A_1"])
    (saved,) = summary.saved
    assert any("no usable breast_coordinates" in note for note in saved.notes)
