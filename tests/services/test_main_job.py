"""Predict, refine, score, export: what is written, what is refused, what survives."""

import json
import os
import shutil
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError, FormatError, ModelError, SaveConflictError
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import case_row, open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.case.refine import find_refined, save_refined
from napari_mamamia.services.export.export import export_masks
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.predict import (
    predict_case,
    save_prediction,
    segmenter_named,
)
from napari_mamamia.services.score.score import score_folders

GEOMETRY = ("dim", "pixdim", "qform_code", "sform_code", "quatern_b", "quatern_c", "quatern_d")
GEOMETRY += ("qoffset_x", "qoffset_y", "qoffset_z", "srow_x", "srow_y", "srow_z", "xyzt_units")


@pytest.fixture
def opened(small_data_set):
    return open_data_set(small_data_set)


@pytest.fixture
def case(opened):
    return load_case(opened.data_set.case("A_1"), opened.record("A_1"))


def same_geometry(path, other):
    a, b = nib.load(path).header, nib.load(other).header
    return all(a[key].tobytes() == b[key].tobytes() for key in GEOMETRY)


def expert(root):
    return root / "segmentations" / "expert"


def test_who_sees_no_list_is_told_why_the_model_is_unsure_and_where_the_candidates_lie(
    case, tmp_path
):
    made = predict_case(case, segmenter_named("kinetic"))
    sure = replace(made, unsure="")
    assert save_prediction(sure, case, tmp_path / "sure.nii.gz").notes == made.notes
    doubtful = replace(made, unsure="candidate 1: muscle?")
    *_, said = save_prediction(doubtful, case, tmp_path / "doubt.nii.gz").notes
    assert said.startswith(
        "it is uncertain which region is the tumour (candidate 1: muscle?); check 1 ("
    )
    z, y, x = made.candidates[0].box.centre
    assert f" ml at z {z:.0f}, y {y:.0f}, x {x:.0f})" in said


def test_the_blob_is_found_and_saved_with_its_provenance(opened, small_data_set, tmp_path):
    out = tmp_path / "out"
    summary = predict_data_set(opened, segmenter_named("kinetic"), out)
    assert [saved.case_id for saved in summary.saved] == ["A_1", "A_2", "B_1"]
    assert summary.failures == ()
    reference = np.asanyarray(nib.load(expert(small_data_set) / "A_1.nii.gz").dataobj) > 0
    found = nib.load(out / "A_1.nii.gz")
    mask = np.asanyarray(found.dataobj)
    assert mask.dtype == np.uint8
    assert set(np.unique(mask)) == {0, 1}
    overlap = 2 * (reference & (mask > 0)).sum() / (reference.sum() + mask.sum())
    assert overlap > 0.7
    assert same_geometry(out / "A_1.nii.gz", small_data_set / "images/A_1/A_1_0000.nii.gz")
    provenance = read_provenance(out / "A_1.json")
    assert provenance.name == "kinetic"
    assert "not a trained model" in provenance.note
    assert [item.name for item in provenance.inputs] == [f"A_1_{k:04d}.nii.gz" for k in range(4)]


def test_a_broken_case_costs_one_row(opened, small_data_set, tmp_path):
    (small_data_set / "images/A_2/A_2_0001.nii.gz").write_bytes(b"")
    summary = predict_data_set(opened, segmenter_named("kinetic"), tmp_path / "out")
    assert [saved.case_id for saved in summary.saved] == ["A_1", "B_1"]
    assert summary.failures[0].case_id == "A_2"
    assert "A_2_0001.nii.gz" in summary.failures[0].reason


def test_resuming_skips_what_is_there(opened, tmp_path):
    kinetic, out = segmenter_named("kinetic"), tmp_path / "out"
    predict_data_set(opened, kinetic, out, ["A_1"])
    before = (out / "A_1.nii.gz").stat().st_mtime_ns
    summary = predict_data_set(opened, kinetic, out, existing=Existing.RESUME)
    assert summary.skipped == ("A_1",)
    assert [saved.case_id for saved in summary.saved] == ["A_2", "B_1"]
    assert (out / "A_1.nii.gz").stat().st_mtime_ns == before


def test_a_second_run_into_the_same_folder_is_refused(opened, tmp_path):
    kinetic, out = segmenter_named("kinetic"), tmp_path / "out"
    predict_data_set(opened, kinetic, out, ["A_1"])
    with pytest.raises(SaveConflictError, match="to be empty"):
        predict_data_set(opened, kinetic, out, ["A_1"])


def test_unknown_names_are_refused_before_anything_is_written(opened, tmp_path):
    with pytest.raises(CaseError, match="a case 'C_9'"):
        predict_data_set(opened, segmenter_named("kinetic"), tmp_path / "out", ["C_9"])
    with pytest.raises(ModelError, match="one of kinetic, but got 'resnet'"):
        segmenter_named("resnet")
    assert not (tmp_path / "out").exists()


def test_cancelling_a_prediction_run_leaves_no_half_file(opened, tmp_path):
    job = Stepped(predict_data_set, opened, segmenter_named("kinetic"), tmp_path / "out")
    for step in job:
        if step.text.startswith("A_2"):
            break
    job.close()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "A_1.json",
        "A_1.nii.gz",
        "case_results.jsonl",
        "run.json",
    ]


def test_the_data_set_is_never_written_to(opened, small_data_set, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in small_data_set.rglob("*")}
    predict_data_set(opened, segmenter_named("kinetic"), tmp_path / "out")
    export_masks(opened.data_set, expert(small_data_set), tmp_path / "export")
    assert {path: path.stat().st_mtime_ns for path in small_data_set.rglob("*")} == before


def test_a_read_only_data_set_can_be_worked_on(opened, small_data_set, tmp_path):
    folders = [small_data_set, *(p for p in small_data_set.rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        summary = predict_data_set(opened, segmenter_named("kinetic"), tmp_path / "out")
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert summary.failures == ()


def test_a_refined_mask_is_there_again_after_a_restart(opened, case):
    labels = np.zeros(case.grid.shape, dtype=np.uint8)
    labels[3, 14:20, 20:26] = 1
    saved = save_refined(
        opened.workspace, "Dr. Åsa Öberg", case, labels, started_from="empty", seconds=12.5
    )
    assert find_refined(opened.workspace, "Dr. Åsa Öberg", "A_1") == saved
    assert case_row(opened, "A_1").refined == ("Dr. Åsa Öberg",)
    np.testing.assert_array_equal(np.asanyarray(nib.load(saved.path).dataobj).transpose(), labels)
    provenance = read_provenance(sidecar_path(saved.path))
    assert (provenance.name, provenance.seconds) == ("Dr. Åsa Öberg", 12.5)


def test_saving_again_replaces_only_the_version_that_was_opened(opened, case):
    workspace = opened.workspace
    first = np.zeros(case.grid.shape, dtype=np.uint8)
    first[3] = 1
    one = save_refined(workspace, "R", case, first)
    two = save_refined(workspace, "R", case, first * 0, replaces=one)
    assert two.sha256 != one.sha256
    for stale in (None, one):
        with pytest.raises(SaveConflictError, match="another window"):
            save_refined(workspace, "R", case, first, replaces=stale)
    assert find_refined(workspace, "R", "A_1") == two


def test_a_prediction_never_replaces_a_file_unasked(opened, case, tmp_path):
    target = tmp_path / "A_1.nii.gz"
    target.write_bytes(b"an expert's work")
    prediction = predict_case(case, segmenter_named("kinetic"))
    with pytest.raises(SaveConflictError):
        save_prediction(prediction, case, target)
    assert target.read_bytes() == b"an expert's work"


def test_a_prediction_that_is_stopped_before_its_provenance_leaves_no_mask(
    opened, case, tmp_path, monkeypatch
):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("napari_mamamia.services.case.explained_mask.write_provenance", stopped)
    prediction = predict_case(case, segmenter_named("kinetic"))
    with pytest.raises(KeyboardInterrupt):
        save_prediction(prediction, case, tmp_path / "A_1.nii.gz")
    assert list(tmp_path.glob("*.nii.gz")) == []


def test_what_a_reader_drew_is_never_replaced_by_a_prediction(opened, case):
    labels = np.ones(case.grid.shape, np.uint8)
    drawn = save_refined(opened.workspace, "R", case, labels)
    prediction = predict_case(case, segmenter_named("kinetic"))
    with pytest.raises(SaveConflictError, match="R drew"):
        save_prediction(prediction, case, drawn.path, overwrite=True)
    assert find_refined(opened.workspace, "R", "A_1") == drawn


@pytest.mark.parametrize("kind", ["prediction", "refined"])
def test_wherever_a_saving_job_may_be_stopped_nothing_is_written_yet(opened, case, tmp_path, kind):
    """The window stops a job at any step that is not binding, and then says nothing was changed."""
    if kind == "prediction":
        target = tmp_path / "A_1.nii.gz"
        prediction = predict_case(case, segmenter_named("kinetic"))
        job = Stepped(save_prediction, prediction, case, target)
    else:
        target = opened.workspace.refined("R", "A_1")
        job = Stepped(save_refined, opened.workspace, "R", case, np.ones(case.grid.shape, np.uint8))
    bound = False
    for progress in job:
        bound = bound or progress.binding
        assert bound or not target.exists()
    assert bound
    assert target.exists()


def test_every_case_of_either_folder_has_a_row_with_its_status(small_data_set, tmp_path):
    reference, prediction = expert(small_data_set), tmp_path / "prediction"
    shutil.copytree(reference, prediction)
    source = nib.load(reference / "A_1.nii.gz")

    def save(case_id, array, affine=source.affine, folder=prediction):
        nib.save(nib.Nifti1Image(array, affine), folder / f"{case_id}.nii.gz")

    data = np.asanyarray(source.dataobj)
    (prediction / "A_2.nii.gz").unlink()
    save("B_1", data * 0)
    save("extra", data)
    for case_id in ("cut", "empty", "nothing", "moved", "torn"):
        save(case_id, data, folder=reference)
    save("cut", data[1:])
    save("empty", data * 0, folder=reference)
    save("empty", data)
    save("nothing", data * 0, folder=reference)
    save("nothing", data * 0)
    moved = source.affine.copy()
    moved[0, 3] += 5
    save("moved", data, moved)
    (prediction / "torn.nii.gz").write_bytes(b"\x1f\x8b broken")
    summary = score_folders(reference, prediction, tmp_path / "scores")
    status = {row.case_id: row.status for row in summary.rows}
    assert status == {
        "A_1": ScoreStatus.OK,
        "A_2": ScoreStatus.PREDICTION_MISSING,
        "B_1": ScoreStatus.PREDICTION_EMPTY,
        "cut": ScoreStatus.GRID_MISMATCH,
        "empty": ScoreStatus.REFERENCE_EMPTY,
        "extra": ScoreStatus.REFERENCE_MISSING,
        "moved": ScoreStatus.GRID_MISMATCH,
        "nothing": ScoreStatus.BOTH_EMPTY,
        "torn": ScoreStatus.UNREADABLE,
    }
    assert all(row.reason for row in summary.rows if row.status is not ScoreStatus.OK)
    assert not summary.all_ok
    record = json.loads(summary.summary.read_text())
    assert record["n_cases"] == 9
    assert record["status"]["grid_mismatch"] == 2


def test_scores_of_a_shifted_box_are_those_worked_out_by_hand(tmp_path):
    # A box of 2 x 4 x 4 voxels of 2 x 1 x 1 mm, and the same box one voxel (1 mm) further along x.
    for name, start in (("reference", 4), ("prediction", 5)):
        array = np.zeros((12, 12, 6), dtype=np.uint8)
        array[start : start + 4, 4:8, 2:4] = 1
        (tmp_path / name).mkdir()
        image = nib.Nifti1Image(array, np.diag([1.0, 1.0, 2.0, 1.0]))
        nib.save(image, tmp_path / name / "A.nii.gz")
    summary = score_folders(tmp_path / "reference", tmp_path / "prediction", tmp_path / "out")
    row = summary.rows[0]
    assert row.dsc == pytest.approx(2 * 24 / 64)  # 3 of 4 columns overlap, 8 voxels each
    assert row.iou == pytest.approx(24 / 40)
    assert row.hausdorff_mm == pytest.approx(1.0)
    assert row.hausdorff95_mm == pytest.approx(1.0)
    assert row.nsd_1mm == pytest.approx(1.0)
    assert row.volume_reference_mm3 == pytest.approx(64.0)


def test_letter_case_does_not_part_a_mask_from_its_reference(opened, small_data_set, tmp_path):
    lower = tmp_path / "lower"
    shutil.copytree(expert(small_data_set), lower)
    for path in lower.iterdir():
        path.rename(lower / path.name.lower())
    summary = score_folders(expert(small_data_set), lower, tmp_path / "out")
    assert [row.case_id for row in summary.rows] == ["A_1", "A_2", "B_1"]
    assert summary.all_ok
    exported = export_masks(opened.data_set, lower, tmp_path / "bundle").exported
    assert [item.case_id for item in exported] == ["A_1", "A_2", "B_1"]


def test_a_folder_without_masks_is_refused(small_data_set, tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(FormatError, match=r"expected masks such as .* found none; choose"):
        score_folders(expert(small_data_set), tmp_path / "none", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_exported_masks_have_the_input_geometry_and_checksums(opened, small_data_set, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    source = nib.load(expert(small_data_set) / "A_1.nii.gz")
    # The same mask as float with another header: only its place is the same.
    nib.save(nib.Nifti1Image(np.asanyarray(source.dataobj) * 1.0, source.affine), masks / "A_1.nii")
    summary = export_masks(opened.data_set, masks, tmp_path / "out")
    written = tmp_path / "out" / "A_1.nii.gz"
    assert same_geometry(written, small_data_set / "images/A_1/A_1_0000.nii.gz")
    assert nib.load(written).get_data_dtype() == np.uint8
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    files = manifest["cases"][0]["files"]
    assert [item["name"] for item in files] == ["A_1.nii.gz", "A_1.json"]
    digest = os.popen(f"sha256sum '{written}'").read().split()[0]
    assert files[0]["sha256"] == digest
    assert summary.exported[0].volume_mm3 == pytest.approx(108 * 0.8 * 0.8 * 2.0)


def test_a_mask_of_several_labels_is_exported_only_when_one_is_chosen(opened, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    array = np.zeros((48, 32, 8), dtype=np.uint8)
    array[10:12, 5, 3], array[20, 5, 3] = 1, 2
    nib.save(nib.Nifti1Image(array, np.diag([-0.8, 0.8, 2.0, 1.0])), masks / "A_1.nii.gz")
    refused = export_masks(opened.data_set, masks, tmp_path / "one")
    assert "one label, but it has 2 (1, 2)" in refused.failures[0].reason
    chosen = export_masks(opened.data_set, masks, tmp_path / "two", label=1)
    assert chosen.exported[0].volume_mm3 == pytest.approx(2 * 0.8 * 0.8 * 2.0)
    absent = export_masks(opened.data_set, masks, tmp_path / "three", label=7)
    assert "to have the label 7, but it has 1, 2" in absent.failures[0].reason


def test_a_mask_on_another_grid_is_not_exported(opened, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    nib.save(nib.Nifti1Image(np.ones((4, 4, 4), np.uint8), np.eye(4)), masks / "A_1.nii.gz")
    summary = export_masks(opened.data_set, masks, tmp_path / "out")
    assert summary.exported == ()
    assert "to be on the same grid" in summary.failures[0].reason
    assert not (tmp_path / "out" / "A_1.nii.gz").exists()
