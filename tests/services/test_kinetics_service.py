"""`mamamia kinetics`: tables, figures, failures, bad input; by the service and the command."""

import csv
import json
import math
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError, GridMismatchError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.kinetics.tumour_volume import box_around_mask
from napari_mamamia.phantom import PhantomSpec, Tissue, make_phantom
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.kinetics.case_kinetics import (
    FtvBox,
    KineticSettings,
    case_kinetics,
    other_breast,
    with_times,
)
from napari_mamamia.services.kinetics.kinetics import kinetics_of_data_set

AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])
BLOB = (slice(3, 6), slice(14, 20), slice(20, 26))


def measure(data_set, out, settings=None, **options):
    opened = open_data_set(data_set, out.parent / "workspace")
    return kinetics_of_data_set(opened, out, settings, **options)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def plain_case(times=(0.0, 100.0, 160.0, 460.0), values=(100, 220, 240, 190), affine=AFFINE):
    """A flat case of 100 whose blob of 108 voxels takes the values."""
    signal = np.full((len(values), 8, 32, 48), 100, np.int16)
    for phase, value in enumerate(values):
        signal[(phase, *BLOB)] = value
    grid = Grid((8, 32, 48), affine)
    phases = tuple(Phase(k, t) for k, t in enumerate(times))
    mask = np.zeros(grid.shape, bool)
    mask[BLOB] = True
    return Case("A", grid, signal, phases), mask


def test_every_number_of_a_plain_case_by_hand():
    case, mask = plain_case()
    row = case_kinetics(case, mask, background=False)
    # UCSF-FTV: posts start at 0, 60, 360 s, half the resolution is 30 s: 30, 90, 390 s
    assert (row.timing, row.ftv_variant) == ("UCSF-FTV", "ucsf-extension")
    assert (row.early_phase, row.early_s, row.early_gap_s) == (2, 90, -60)
    assert (row.late_phase, row.late_s, row.late_gap_s) == (3, 390, -60)
    assert (row.initial_phase, row.initial_gap_s) == (2, 0)
    assert (row.delayed_phase, row.delayed_gap_s) == (3, 120)
    assert row.mean_pe_percent == "0 120 140 90"
    assert (row.peak_pe_of_mean_percent, row.peak_phase_of_mean) == (140, 2)
    assert row.delayed_change_percent == pytest.approx(100 * (190 - 240) / 240)
    assert (row.initial_class, row.delayed_class) == ("fast", "washout")
    assert (row.predominant_curve, row.worst_curve) == ("washout", "washout")
    assert row.volume_mm3 == pytest.approx(108 * 0.8 * 0.8 * 2)
    assert row.washout_mm3 == row.angio_volume_mm3 == row.volume_mm3
    # 2 slices of 2 mm and 5 voxels of 0.8 mm apart: corner to corner
    assert row.longest_diameter_mm == pytest.approx(math.sqrt(4**2 + 4**2 + 4**2))
    assert row.in_plane_diameter_mm == pytest.approx(math.sqrt(4**2 + 4**2))
    # SER = 140 / 90 = 1.56: red; the corners of the blob have 7 neighbours, the least
    assert row.ftv_cc == row.ftv_red_cc == pytest.approx(row.volume_mm3 / 1000)
    assert row.ftv_red_percent == pytest.approx(100)
    assert row.ftv_box == "mask + 10 mm [0:8, 1:32, 7:39]"


def test_the_box_around_a_mask_reaches_10_mm_further_and_stays_inside():
    case, mask = plain_case()
    # 5 slices of 2 mm, 13 voxels of 0.8 mm
    assert box_around_mask(mask, case.grid) == Box((0, 1, 7), (8, 32, 39))


def test_equal_times_and_missing_times_are_told_and_phases_go_by_order():
    for times, reason in (
        ((0.0, 90.0, 90.0, 300.0), "do not increase"),
        ((None,) * 4, "no acquisition times"),
    ):
        case, mask = plain_case(times=times)
        row = case_kinetics(case, mask, background=False)
        assert row.timing == "by phase order, times unknown"
        assert reason in row.early_late_reason
        assert reason in row.warning
        assert row.times_s == ""
        assert row.ftv_cc > 0


def test_times_that_do_not_start_at_0_count_from_the_first():
    late, mask = plain_case(times=(40.0, 140.0, 200.0, 500.0))
    first, _ = plain_case()
    rows = [case_kinetics(case, mask, background=False) for case in (late, first)]
    # since Python 3.13 no record with nan equals itself
    assert repr(rows[0]) == repr(rows[1])


def test_one_phase_after_contrast_gives_sizes_and_rise_but_neither_course_nor_ftv():
    case, mask = plain_case(times=(0.0, 100.0), values=(100, 220))
    row = case_kinetics(case, mask, background=False)
    assert row.initial_class == "fast"
    assert (row.delayed_class, row.worst_curve) == ("undefined", "undefined")
    assert math.isnan(row.ftv_cc)
    assert "no phase after" in row.ftv_reason
    assert row.angio_volume_mm3 > 0
    assert math.isnan(row.washout_mm3)


def test_phase_0_alone_is_an_error():
    case, mask = plain_case(times=(0.0,), values=(100,))
    with pytest.raises(CaseError, match="at least 2"):
        case_kinetics(case, mask)


def test_an_empty_mask_is_a_warning_and_unknown_numbers():
    case, mask = plain_case()
    row = case_kinetics(case, np.zeros_like(mask))
    assert row.volume_mm3 == 0
    assert math.isnan(row.longest_diameter_mm)
    assert math.isnan(row.angio_volume_mm3)
    assert math.isnan(row.ftv_cc)
    assert row.ftv_reason == row.bpe_reason == "the mask is empty"
    assert "the mask is empty" in row.warning
    assert row.mean_pe_percent == ""


def test_voxels_that_are_not_numbers_do_not_spoil_the_others():
    case, mask = plain_case()
    signal = case.signal.astype(np.float32)
    signal[2, 3, 14, 20] = np.nan
    row = case_kinetics(replace(case, signal=signal), mask, background=False)
    assert row.mean_pe_percent == "0 120 140 90"
    assert row.ftv_cc == pytest.approx(107 * 1.28 / 1000)


def test_a_mask_of_another_shape_is_refused():
    case, _ = plain_case()
    with pytest.raises(GridMismatchError, match=r"\(2, 2, 2\)"):
        case_kinetics(case, np.ones((2, 2, 2), bool))


def test_the_wrong_number_of_typed_times_is_refused_with_both_numbers():
    case, _ = plain_case()
    with pytest.raises(CaseError, match=r"4 phases of A, but got 2 \(0, 90\)"):
        with_times(case, (0, 90))


def test_the_breast_box_is_the_region_of_ftv_where_it_is_chosen():
    case, mask = plain_case()
    settings = KineticSettings(ftv_box=FtvBox.BREAST)
    box = Box((0, 0, 0), (8, 32, 23))  # half of the blob
    row = case_kinetics(replace(case, breast_box=box), mask, settings, background=False)
    assert row.ftv_cc == pytest.approx(54 * 1.28 / 1000)
    assert row.ftv_box.startswith("breast box of the patient info")
    without = case_kinetics(case, mask, settings, background=False)
    assert "no usable breast box" in without.ftv_reason


def test_a_tumour_darker_than_bright_fat_gives_an_ftv_that_is_marked():
    case, mask = plain_case()
    signal = case.signal.copy()
    signal[:, ~mask] = 400
    row = case_kinetics(replace(case, signal=signal), mask, background=False)
    assert row.ftv_cc == 0
    assert "without fat suppression" in row.ftv_reason


def test_a_sagittal_case_is_measured_across_its_own_slices():
    # first array axis left to right: 3 slices of 2 mm there
    sagittal = np.array([[0, 0, 2.0, 0], [0.8, 0, 0, 0], [0, 0.8, 0, 0], [0, 0, 0, 1]])
    case, mask = plain_case(affine=sagittal)
    assert case.grid.acquisition_plane == "sagittal"
    row = case_kinetics(case, mask)
    assert row.in_plane_diameter_mm == pytest.approx(math.sqrt(4**2 + 4**2))
    assert row.worst_curve == "washout"
    assert row.bpe_reason


def test_the_other_breast_lies_on_the_other_side():
    phantom = make_phantom(
        PhantomSpec(times_s=(0.0, 120.0, 300.0))
    )  # the tumour is on the left, x < 0
    breast, why = other_breast(phantom.case, phantom.reference.array)
    assert why == ""
    x_mm = phantom.case.grid.to_world_mm(np.argwhere(breast)[:, ::-1])[:, 0]
    true = phantom.case.grid.to_world_mm(np.argwhere(phantom.breast)[:, ::-1])[:, 0]
    assert x_mm.min() > -15.0
    assert x_mm.max() == pytest.approx(true.max(), abs=15.0)
    assert not (breast & phantom.reference.array).any()


def test_the_background_of_a_phantom_is_near_what_its_gland_was_given():
    spec = PhantomSpec(times_s=(0.0, 120.0, 300.0), background_enhancement_percent=30.0)
    phantom = make_phantom(spec)
    row = case_kinetics(phantom.case, phantom.reference.array)
    other, _ = other_breast(phantom.case, phantom.reference.array)
    gland = other & (phantom.tissue == Tissue.FIBROGLANDULAR)
    pre, early = (phantom.case.signal[k][gland].astype(float) for k in (0, 1))
    truth = float(np.median(100 * (early[pre > 0] - pre[pre > 0]) / pre[pre > 0]))
    assert 20.0 < truth < 35.0
    assert row.bpe_median_percent_experimental == pytest.approx(truth, abs=3.0)


# --- many cases


def test_a_data_set_becomes_tables_figures_and_definitions(small_data_set, tmp_path):
    out = tmp_path / "out"
    summary = measure(small_data_set, out)
    assert not summary.failures
    rows = rows_of(out / "kinetics.csv")
    assert [row["case_id"] for row in rows] == ["A_1", "A_2", "B_1"]
    first = rows[0]
    assert first["times_source"] == "from the clinical table"
    assert first["times_s"] == "0 90 180 420"
    assert float(first["volume_mm3"]) == pytest.approx(108 * 1.28)
    # 200 +- 3 before contrast, then 460, 440, 390: -15 % from 90 to 420 s
    assert (first["initial_class"], first["delayed_class"]) == ("fast", "washout")
    assert float(first["peak_pe_of_mean_percent"]) == pytest.approx(130, abs=1.0)
    assert float(first["ftv_cc"]) == pytest.approx(0.13824)
    curves = [row for row in rows_of(out / "curves.csv") if row["case_id"] == "A_2"]
    assert [row["time_s"] for row in curves if row["region"] == "mean"] == ["0", "90", "180", "420"]
    for case_id in ("A_1", "A_2", "B_1"):
        assert (out / "figures" / f"{case_id}.png").read_bytes()[:4] == b"\x89PNG"
        assert "<svg" in (out / "figures" / f"{case_id}.svg").read_text(encoding="utf-8")
    said = json.loads((out / "kinetics.json").read_text(encoding="utf-8"))
    assert "100 (S - S0) / S0" in said["columns"]["mean_pe_percent"]
    assert said["n_cases"] == 3
    assert (out / "kinetics.xlsx").exists()


def test_failures_are_rows_and_the_exit_code_is_3(small_data_set, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    source = small_data_set / "segmentations" / "expert" / "A_1.nii.gz"
    (masks / "A_1.nii.gz").write_bytes(source.read_bytes())
    moved = nib.Nifti1Image(np.ones((48, 32, 8), np.uint8), np.diag([-1.0, 1.0, 2.0, 1.0]))
    nib.save(moved, masks / "A_2.nii.gz")
    out = tmp_path / "out"
    command = ["kinetics", str(small_data_set), "--out", str(out), "--masks", str(masks)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 3
    rows = {row["case_id"]: row for row in rows_of(out / "kinetics.csv")}
    assert rows["A_1"]["status"] == "ok"
    assert rows["A_1"]["mask"] == "masks"
    assert rows["A_2"]["status"] == rows["B_1"]["status"] == "failed"
    assert "A_2" in rows["A_2"]["reason"]
    assert (
        "expected masks to have a mask of B_1, but found none; choose a folder with masks"
        in rows["B_1"]["reason"]
    )
    assert "choose a folder with masks (--masks DIR)" in " ".join(result.output.split())
    assert not (out / "figures" / "A_2.png").exists()


def test_typed_times_take_the_place_of_the_table(small_data_set, tmp_path):
    out = tmp_path / "out"
    command = ["kinetics", str(small_data_set), "--out", str(out), "--case", "A_1"]
    result = CliRunner().invoke(app, [*command, "--times", "0,60,110,200"])
    assert result.exit_code == 0
    (row,) = rows_of(out / "kinetics.csv")
    assert row["times_source"] == "typed in"
    assert row["initial_phase"] == "2"
    assert row["delayed_phase"] == ""
    assert "270 s" in row["curve_reason"]


def test_times_that_are_no_numbers_are_a_usage_error(small_data_set, tmp_path):
    command = ["kinetics", str(small_data_set), "--out", str(tmp_path / "o"), "--times", "0,x"]
    assert CliRunner().invoke(app, command).exit_code == 2


def test_a_second_run_needs_resume_and_then_measures_only_what_changed(small_data_set, tmp_path):
    out = tmp_path / "out"
    only = {"case_ids": ("A_1", "A_2")}
    measure(small_data_set, out, **only)
    with pytest.raises(SaveConflictError, match="to be empty, but it contains files"):
        measure(small_data_set, out, **only)
    mask = small_data_set / "segmentations" / "expert" / "A_2.nii.gz"
    image = nib.load(mask)
    values = np.asarray(image.dataobj).copy()
    values[..., 3] = 0  # one slice of 36 voxels less
    nib.save(nib.Nifti1Image(values, image.affine, image.header), mask)
    again = measure(small_data_set, out, existing=Existing.RESUME, **only)
    assert again.n_reused == 1
    volumes = {row.case_id: row.volume_mm3 for row in again.rows}
    assert volumes["A_2"] == pytest.approx(72 * 1.28)
    assert volumes["A_1"] == pytest.approx(108 * 1.28)


@pytest.mark.real
def test_the_real_rim_gives_the_known_curve_to_the_last_digit(real_data, tmp_path):
    """All edges of the box count, and voxels without signal before contrast, which rise to some."""
    folder = real_data("dce_slice")
    files = sorted((folder / "images" / "REAL_001").glob("*.nii.gz"))
    images = [nib.load(file) for file in files]
    pre, second = (np.asarray(images[k].dataobj).astype(float) for k in (0, 2))
    last = pre.shape[1] - 1
    mask = np.zeros(pre.shape, np.uint8)
    rows = slice(last - 125, last - 95 + 1)  # from the top, the file counts from below
    mask[85:116, rows] = (second > 1.8 * pre)[85:116, rows]
    (tmp_path / "masks").mkdir()
    made = nib.Nifti1Image(mask, images[0].affine, images[0].header)
    nib.save(made, tmp_path / "masks" / "REAL_001.nii.gz")
    summary = measure(folder, tmp_path / "out", masks=tmp_path / "masks")
    (row,) = summary.rows
    found = [float(part) for part in row.mean_pe_percent.split()]
    np.testing.assert_allclose(found, (0.0, 164.4, 212.1, 209.9, 205.5, 197.4), atol=0.06)
    assert (row.initial_class, row.early_phase, row.late_phase) == ("fast", 3, 5)
    assert (row.initial_phase, row.delayed_class) == (2, "plateau")  # type II, as published
    assert row.bpe_reason == "only one breast is in view"
