"""Values of mask files through the real commands: maps on any scale, grids without a spacing."""

import csv
import json
import math

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - as the scripts call it
from tests.cli.warm_program import mamamia

import napari_mamamia as mm
from napari_mamamia.core.errors import NotAMaskError
from napari_mamamia.services.case.open_case import load_case, load_mask
from napari_mamamia.services.case.show_case import uint8_mask
from napari_mamamia.widgets.base.service_record import Services

pytestmark = pytest.mark.usefixtures("quick_figures")

AFFINE = np.diag([-0.7, 0.7, 2.0, 1.0])
AXES = np.indices((12, 16, 18)) - np.array([6, 8, 9]).reshape(3, 1, 1, 1)
SURE = np.clip(1.3 - np.sqrt((AXES**2).sum(axis=0)) / 5, 0, 1)
"""How sure a model is of each voxel, 0 to 1."""
TRUE = np.roll(SURE >= 0.5, 1, axis=1)
HALF = SURE >= 0.5
DICE = 2 * (TRUE & HALF).sum() / (TRUE.sum() + HALF.sum())

MAPS = {
    "above_one": (SURE * 1.0000002).astype(np.float32),
    "below_zero": (SURE - 1e-9 * (SURE == 0)).astype(np.float64),
    "spline": np.where(SURE >= 1, 1.07, SURE - 0.04 * (SURE == 0)).astype(np.float32),
    "half_float": SURE.astype(np.float16).astype(np.float32),
    "zero_255": HALF.astype(np.int16) * 255,
    "zero_255_float": HALF.astype(np.float32) * 255,
    "labels": np.where(HALF & (SURE > 0.9), 2, HALF).astype(np.uint8),
}
REFUSED = {
    "percent": np.rint(SURE * 100).astype(np.uint8),
    "bytes": np.rint(SURE * 255).astype(np.uint8),
    "permille": np.rint(SURE * 1000).astype(np.int16),
    "percent_float": (SURE * 100).astype(np.float32),
    "faint_percent": np.rint(SURE * 30).astype(np.uint8),
    "logits": (SURE * 12 - 6).astype(np.float32),
}
FAINT = (SURE * 0.3).astype(np.float32)


def save(path, array, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    array = array.astype(np.uint8) if array.dtype == bool else array
    nib.save(nib.Nifti1Image(array.transpose(), affine), path)


def score(folder, out, *extras):
    done = mamamia(
        "score", "--reference", folder / "reference", "--prediction", folder / "team",
        "--bootstrap", 0, "--out", out, *extras, has_figures=False,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    rows = csv.DictReader((out / "case_scores.csv").open())
    return done, {row["case_id"]: row for row in rows}


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    for name, values in (MAPS | REFUSED | {"faint": FAINT}).items():
        save(folder / "reference" / f"{name}.nii.gz", TRUE)
        save(folder / "team" / f"{name}.nii.gz", values)
    return folder


@pytest.mark.parametrize("profile", ["clinical", "paper"])
def test_a_map_counts_from_one_half_or_is_refused_with_its_range(maps, tmp_path, profile):
    done, rows = score(maps, tmp_path / "out", "--profile", profile)
    assert "1 of 14 cases have several values" in done.stdout
    of_profile = dict.fromkeys(MAPS, DICE)
    if profile == "paper":  # 1 is the tumour there, 2 another label
        ones = HALF & (SURE <= 0.9)
        of_profile["labels"] = 2 * (TRUE & ones).sum() / (TRUE.sum() + ones.sum())
    found = {name: float(rows[name]["dsc"]) for name in MAPS}
    assert found == pytest.approx(of_profile, abs=1e-12)
    for name, values in REFUSED.items():
        row = rows[name]
        assert (row["status"], row["dsc"]) == ("too_many_labels", ""), name
        assert f"to {values.max():g}" in row["reason"], name
    assert rows["faint"]["status"] == "prediction_empty"
    assert "its largest value is 0.3" in rows["faint"]["reason"]


def test_official_code_counts_values_as_stored_and_says_so(maps, tmp_path):
    done, rows = score(maps, tmp_path / "out", "--profile", "official-code")
    for name, values in (MAPS | REFUSED | {"faint": FAINT}).items():
        ones = values == 1
        assert float(rows[name]["dsc"]) == 2 * (TRUE & ones).sum() / (TRUE.sum() + ones.sum()), name
        if rows[name]["status"] == "ok":
            assert "contains the values" in rows[name]["warning"], name
    assert "which the profile official-code counts as stored" in done.stdout


def test_export_library_and_window_read_the_same_masks(maps, tmp_path):
    for name in ("above_one", "faint_percent"):
        for phase in (0, 1):
            save(
                tmp_path / "data" / "images" / name / f"{name}_000{phase}.nii.gz", SURE * 9 * phase
            )
    team = tmp_path / "team"
    team.mkdir()
    for name in ("above_one", "faint_percent"):
        (team / f"{name}.nii.gz").write_bytes((maps / "team" / f"{name}.nii.gz").read_bytes())
    out = tmp_path / "bundle"
    done = mamamia("export", tmp_path / "data", "--masks", team, "--out", out, has_figures=False)
    assert done.returncode == 3
    assert "faint_percent.nii.gz: expected a mask" in done.stderr
    assert "its values go from 0 to 30" in done.stderr
    (written,) = (one for one in out.rglob("above_one*.nii.gz"))
    np.testing.assert_array_equal(mm.read_mask(written).array, HALF)

    with pytest.raises(NotAMaskError, match=r"percent\.nii\.gz: expected a mask"):
        mm.read_mask(team / "faint_percent.nii.gz")
    np.testing.assert_array_equal(mm.read_mask(team / "above_one.nii.gz").array, HALF)
    scores = mm.score(maps / "reference", maps / "team", bootstrap=0, progress=False)
    assert scores.summary["status"]["too_many_labels"] == len(REFUSED)

    services = Services()
    opened = services.open_data_set(tmp_path / "data")
    files = {one.case_id: one for one in opened.data_set.cases}["faint_percent"]
    case = load_case(files)
    with pytest.raises(NotAMaskError, match="from 0 to 30"):
        uint8_mask(load_mask(team / "faint_percent.nii.gz", case))


def test_an_identity_grid_is_stated_in_table_terminal_summary_report_and_library(tmp_path):
    grids = {
        "plain": np.eye(4), "turned": np.diag([-1.0, -1.0, 1.0, 1.0]),
        "spaced": AFFINE, "moved": np.eye(4) + np.outer([1, 0, 0, 0], [0, 0, 0, 40]),
    }  # fmt: skip
    for name, affine in grids.items():
        save(tmp_path / "reference" / f"{name}.nii.gz", TRUE, affine)
        save(tmp_path / "team" / f"{name}.nii.gz", HALF, affine)
    done, rows = score(tmp_path, tmp_path / "out")
    said = {name: "the grid is an identity" in row["warning"] for name, row in rows.items()}
    assert said == {"plain": True, "turned": True, "spaced": False, "moved": False}
    note = "2 of 4 cases: the grid is an identity (1 x 1 x 1 mm, origin 0 or in the middle)"
    assert note in done.stdout
    assert any(
        note in text
        for text in json.loads((tmp_path / "out" / "summary.json").read_text())["notes"]
    )
    assert note in (tmp_path / "out" / "report.html").read_text()
    with pytest.warns(UserWarning, match="mm and ml are therefore counts of voxels"):
        mask = mm.read_mask(tmp_path / "team" / "plain.nii.gz")
    assert math.isclose(mask.volume_mm3, HALF.sum())


@pytest.mark.real
def test_a_published_mask_of_i_spy2_has_an_identity_grid(real_data):
    """BreastDCEDL's own table says 31.11 ml of it; its file makes 42,423 voxels of 1 mm."""
    path = real_data("masks") / "ACRIN-6698-102212_spy2_vis1_mask.nii.gz"
    with pytest.warns(UserWarning, match="the grid is an identity"):
        mask = mm.read_mask(path)
    assert mask.array.sum() == 42423


def test_official_code_counts_nan_and_infinity_as_simpleitk_reads_them(tmp_path):
    """SimpleITK reads both as 0 from NIfTI; the other profiles refuse the case."""
    one = HALF.astype(np.float32)
    damaged = {"nan": np.nan, "inf": np.inf, "minus_inf": -np.inf}
    for name, value in {**damaged, "sound": 0.0}.items():
        some = one.copy()
        some[2, :3, :3] = some[6, 8, 9] = value
        save(tmp_path / "reference" / f"{name}.nii.gz", TRUE)
        save(tmp_path / "team" / f"{name}.nii.gz", some)
        read = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "team" / f"{name}.nii.gz")))
        assert np.isfinite(read).all()
    save(tmp_path / "reference" / "in_reference.nii.gz", np.where(AXES[0] > 4, np.nan, TRUE))
    save(tmp_path / "team" / "in_reference.nii.gz", HALF)
    done, rows = score(tmp_path, tmp_path / "official", "--profile", "official-code")
    assert done.returncode == 0, done.stderr
    for name in (*damaged, "in_reference"):
        a, b = (
            sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / part / f"{name}.nii.gz"))) == 1
            for part in ("reference", "team")
        )
        assert float(rows[name]["dsc"]) == 2 * (a & b).sum() / (a.sum() + b.sum()), name
        assert "NaN or infinity, which count as 0" in rows[name]["warning"], name
    assert float(rows["nan"]["dsc"]) == float(rows["sound"]["dsc"])
    assert "NaN" not in rows["sound"]["warning"]
    note = "4 of 5 cases: a mask with NaN or infinity, which count as 0"
    assert note in done.stdout
    _, rows = score(tmp_path, tmp_path / "clinical")
    assert {rows[name]["status"] for name in damaged} == {"not_finite"}


def test_a_refusal_names_a_label_only_where_one_can_be_chosen(maps, tmp_path):
    for profile, is_choice in (("clinical", True), ("paper", False)):
        _, rows = score(maps, tmp_path / profile, "--profile", profile)
        assert rows["percent"]["status"] == "too_many_labels"
        assert ("choose one of them" in rows["percent"]["reason"]) == is_choice, profile


def test_empty_masks_that_the_profile_defines_end_with_0(tmp_path):
    nothing = np.zeros_like(TRUE)
    pairs = {"plain": (TRUE, HALF), "no_prediction": (TRUE, nothing),
             "no_reference": (nothing, HALF), "neither": (nothing, nothing)}  # fmt: skip
    for name, masks in pairs.items():
        for folder, mask in zip(("reference", "team"), masks, strict=True):
            save(tmp_path / folder / f"{name}.nii.gz", mask)
    for profile, code in (("official-code", 0), ("clinical", 3)):
        done, rows = score(tmp_path, tmp_path / profile, "--profile", profile)
        assert done.returncode == code, profile
        assert "the prediction has no foreground" in rows["no_prediction"]["reason"]
        scores = mm.score(
            tmp_path / "reference", tmp_path / "team", profile=profile, bootstrap=0, progress=False
        )
        assert scores.all_ok == (code == 0)
    (tmp_path / "team" / "plain.nii.gz").unlink()
    done, _ = score(tmp_path, tmp_path / "missing", "--profile", "official-code")
    assert done.returncode == 3
