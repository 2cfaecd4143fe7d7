"""Bundles: what is written where, what is refused, and that it can be turned back."""

import csv
import errno
import json
import os
import shutil
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from tests.conftest import contents
from tests.halves import half_by_day
from tests.stepped import Stepped

from napari_mamamia.core.choices import ExportFormat, FuseRule, OrientationProfile
from napari_mamamia.core.errors import CaseError, FormatError, MissingExtraError, Remedy, SaveError
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.core.reorientation import reorientation_to
from napari_mamamia.io.data_set.label_map import read_label_rules
from napari_mamamia.io.data_set.volumes import read_header, read_labels
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.volumes import voxel_writer
from napari_mamamia.io.workspace.provenance import read_provenance
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.export import format_spec as export_writer
from napari_mamamia.services.export.export import TargetState, export_bundle, look_at_target
from napari_mamamia.services.export.plan import ExportSettings, MaskFolder

AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])  # LAS
SHAPE = (8, 32, 48)


@pytest.fixture
def opened(small_data_set, tmp_path):
    return open_data_set(small_data_set, tmp_path / "workspace")


@pytest.fixture
def expert(small_data_set):
    return small_data_set / "segmentations" / "expert"


def save_mask(path: Path, array_zyx, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array_zyx.astype(np.uint8).transpose(), affine), path)
    return path


def blob(value=1, at=(3, 14, 20), size=(3, 6, 6)):
    mask = np.zeros(SHAPE, np.uint8)
    mask[tuple(slice(a, a + n) for a, n in zip(at, size, strict=True))] = value
    return mask


def export(opened, out, *masks, existing=Existing.REFUSE, **settings):
    folders = tuple(m if isinstance(m, MaskFolder) else MaskFolder(m) for m in masks)
    return export_bundle(opened, ExportSettings(folders, **settings), out, existing)


def names_below(root):
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


def array_of(path):
    return np.asanyarray(nib.load(path).dataobj).transpose()


# ----------------------------------------------------------------------- native and harmonised


def test_a_bundle_lists_every_file_and_is_verified(opened, expert, tmp_path):
    summary = export(opened, tmp_path / "out", expert)
    assert summary.problems == ()
    assert names_below(tmp_path / "out") == [
        *(f"{case}{end}" for case in ("A_1", "A_2", "B_1") for end in (".json", ".nii.gz")),
        "manifest.json",
        "quality.csv",
        "quality.html",
        "run.json",
    ]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    listed = [f["name"] for case in manifest["cases"] for f in case["files"]]
    listed += [f["name"] for f in manifest["files"]]
    assert sorted(listed) == [n for n in names_below(tmp_path / "out") if n != "manifest.json"]
    assert manifest["labels"] == [{"value": 1, "name": "tumour"}]


@pytest.mark.parametrize("profile", ["ras", "lps", "las-psr"])
def test_harmonised_masks_and_images_turn_back_to_the_same_bytes(
    opened, expert, small_data_set, tmp_path, profile
):
    export(
        opened,
        tmp_path / "out",
        expert,
        profile=OrientationProfile(profile),
        with_images=True,
        case_ids=("A_2",),
    )
    harmonised = tmp_path / "out" / "harmonised"
    wanted = "LAS" if profile == "las-psr" else profile.upper()
    pairs = [
        (harmonised / "segmentations/expert/A_2.nii.gz", expert / "A_2.nii.gz"),
        *(
            (
                harmonised / f"images/A_2/A_2_000{k}.nii.gz",
                small_data_set / f"images/A_2/A_2_000{k}.nii.gz",
            )
            for k in range(4)
        ),
    ]
    for turned, source in pairs:
        image, before = nib.load(turned), nib.load(source)
        assert "".join(nib.aff2axcodes(image.affine)) == wanted
        back = image.as_reoriented(
            nib.orientations.ornt_transform(
                nib.io_orientation(image.affine), nib.io_orientation(before.affine)
            )
        )
        assert back.get_data_dtype() == before.get_data_dtype()
        assert np.asanyarray(back.dataobj).tobytes() == np.asanyarray(before.dataobj).tobytes()
        # float32 holds an origin of up to 38 mm to 2e-6 mm
        np.testing.assert_allclose(back.affine, before.affine, atol=4e-6)
    (case,) = find_data_set(harmonised).cases  # opens as a MAMA-MIA data set
    assert [phase.time_s for phase in case.phases] == [0, 90, 180, 420]  # of the clinical table


def test_boxes_and_lesions_move_along(small_data_set, expert, tmp_path):
    info = small_data_set / "patient_info_files" / "a_1.json"
    info.parent.mkdir()
    # our z 1..5, y 10..30, x 4..40; the file's x is our z
    sides = {"x_min": 1, "x_max": 5, "y_min": 10, "y_max": 30, "z_min": 4, "z_max": 40}
    info.write_text(
        json.dumps(
            {
                "patient_id": "A_1",
                "clinical_data": {"age": 51},
                "primary_lesion": {"breast_coordinates": sides, "tumor_subtype": "luminal"},
                "imaging_data": {"acquisition_times": [0, 90, 180, 420], "site": "X"},
            }
        )
    )
    opened = open_data_set(small_data_set, tmp_path / "workspace")
    export(opened, tmp_path / "out", expert, profile=OrientationProfile.RAS, case_ids=("A_1",))
    root = tmp_path / "out" / "harmonised"
    moved = json.loads((root / "patient_info_files/A_1.json").read_text())
    # LAS to RAS mirrors x (48 voxels): 4..40 becomes 8..44
    assert moved == {
        "patient_id": "A_1",
        "primary_lesion": {"breast_coordinates": {**sides, "z_min": 8, "z_max": 44}},
        "imaging_data": {"acquisition_times": [0, 90, 180, 420]},
    }
    found = json.loads((root / "coordinates/A_1.json").read_text())
    assert found["breast_box_harmonised"] == [[1, 10, 8], [5, 30, 44]]
    (lesion,) = found["lesions"]
    # the blob is z 3..6, y 14..20, x 20..26: 108 voxels round (4, 16.5, 22.5)
    assert lesion["n_voxels"] == 108
    assert lesion["box_native"] == [[3, 14, 20], [6, 20, 26]]
    assert lesion["box_harmonised"] == [[3, 14, 22], [6, 20, 28]]
    assert lesion["centre_harmonised_zyx"] == [4.0, 16.5, 24.5]
    assert lesion["centre_ras_mm"] == pytest.approx([-0.8 * 22.5, 0.8 * 16.5, 2.0 * 4])


# -------------------------------------------------------------------------- readers and labels


def test_several_readers_are_kept_apart_by_name(opened, expert, tmp_path):
    save_mask(tmp_path / "ana" / "A_1.nii.gz", blob(at=(2, 10, 10)))
    summary = export(opened, tmp_path / "out", expert, MaskFolder(tmp_path / "ana", "Ana López"))
    masks = tmp_path / "out" / "masks"
    np.testing.assert_array_equal(array_of(masks / "Ana López/A_1.nii.gz"), blob(at=(2, 10, 10)))
    np.testing.assert_array_equal(array_of(masks / "expert/A_1.nii.gz"), blob())
    assert "Ana López has no mask for B_1" in summary.notes
    assert summary.problems == ()


def test_names_that_collide_are_refused_before_anything_is_written(opened, expert, tmp_path):
    other = tmp_path / "Expert"
    save_mask(other / "A_1.nii.gz", blob())
    with pytest.raises(CaseError, match=r"'expert' and 'Expert': rename one set"):
        export(opened, tmp_path / "out", expert, other)
    with pytest.raises(CaseError, match="'majority' and 'majority'"):
        export(
            opened,
            tmp_path / "out",
            expert,
            MaskFolder(other, "majority"),
            fuse=FuseRule.MAJORITY,
        )
    assert not (tmp_path / "out").exists()


def test_label_rules_map_each_source_to_one_label_set(opened, tmp_path):
    save_mask(tmp_path / "ana" / "A_1.nii.gz", blob(255))
    two = blob(1)
    two[6, 2:4, 2:4] = 7
    save_mask(tmp_path / "ben" / "A_1.nii.gz", two)
    rules = tmp_path / "rules.json"
    rules.write_text(
        '{"rules": [{"source": 255, "target": 1, "name": "tumour", "masks": "ana"},'
        ' {"source": 1, "target": 1, "name": "tumour", "masks": "ben"},'
        ' {"source": 7, "target": 2, "name": "lymph node"}]}'
    )
    out = tmp_path / "out"
    export(opened, out, tmp_path / "ana", tmp_path / "ben", rules=read_label_rules(rules))
    np.testing.assert_array_equal(array_of(out / "masks/ana/A_1.nii.gz"), blob())
    values, counts = np.unique(array_of(out / "masks/ben/A_1.nii.gz"), return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True))[2] == 4
    assert json.loads((out / "manifest.json").read_text())["labels"][1] == {
        "value": 2,
        "name": "lymph node",
    }


def test_a_value_without_a_rule_is_refused_by_name(opened, tmp_path):
    save_mask(tmp_path / "ana" / "A_1.nii.gz", blob(3))
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": [{"source": 1, "target": 1, "name": "tumour"}]}')
    summary = export(opened, tmp_path / "out", tmp_path / "ana", rules=read_label_rules(rules))
    assert summary.exported == ()
    assert "but 3 has none" in summary.failures[0].reason
    assert "A_1.nii.gz" in summary.failures[0].reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no json", "cannot read label rules"),
        ("[]", "expected"),
        ('{"rules": []}', "expected"),
        ('{"rules": [3]}', "expected rule 1 of"),
        ('{"rules": [{"source": 1, "targt": 1, "name": "x"}]}', "unknown key 'targt'"),
        ('{"rules": [{"source": "1", "target": 1, "name": "x"}]}', "source to be a number"),
        ('{"rules": [{"source": 1, "target": 1.5, "name": "x"}]}', "target a whole number"),
        ('{"rules": [{"source": 1, "target": 1}]}', "a name such as"),
        ('{"rules": [{"source": 1, "target": 256, "name": "x"}]}', "0 to 255, but it is 256"),
        ('{"rules": [{"source": 0, "target": 1, "name": "x"}]}', "background"),
        (
            '{"rules": [{"source": 1, "target": 1, "name": "a"},'
            ' {"source": 2, "target": 1, "name": "b"}]}',
            "one name for label 1",
        ),
        (
            '{"rules": [{"source": 1, "target": 1, "name": "a"}, {"source": 2, "target": 0},'
            ' {"source": 1, "target": 0, "masks": "ana"}]}',
            "one rule for each value in .* rules 1 and 3 are both for 1",
        ),
    ],
)
def test_a_faulty_label_map_is_named_with_its_rule(tmp_path, text, reason):
    path = tmp_path / "rules.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=reason):
        read_label_rules(path)


def test_a_majority_of_three_is_written_beside_the_readers(opened, tmp_path):
    columns = {"ana": (0, 2), "ben": (0, 4), "eva": (2, 4)}
    for name, (start, stop) in columns.items():
        mask = np.zeros(SHAPE, np.uint8)
        mask[3, 16, start:stop] = 1
        save_mask(tmp_path / name / "A_1.nii.gz", mask)
    folders = [tmp_path / name for name in columns]
    export(opened, tmp_path / "out", *folders, fuse=FuseRule.MAJORITY)
    fused = array_of(tmp_path / "out/masks/majority/A_1.nii.gz")
    assert fused[3, 16, :5].tolist() == [1, 1, 1, 1, 0]  # ana+ben, ana+ben, ben+eva, ben+eva
    made = read_provenance(tmp_path / "out/masks/majority/A_1.json")
    assert dict(made.parameters)["readers"] == "ana, ben, eva"
    assert dict(made.parameters)["ties"] == "background"


def test_staple_says_how_well_each_reader_did(opened, tmp_path):
    small = blob(size=(1, 6, 6))
    for name, mask in (("ana", blob()), ("ben", blob()), ("eva", small)):
        save_mask(tmp_path / name / "A_1.nii.gz", mask)
    folders = [tmp_path / name for name in ("ana", "ben", "eva")]
    export(opened, tmp_path / "out", *folders, fuse=FuseRule.STAPLE)
    np.testing.assert_array_equal(array_of(tmp_path / "out/masks/staple/A_1.nii.gz"), blob())
    made = dict(read_provenance(tmp_path / "out/masks/staple/A_1.json").parameters)
    assert made["sensitivity of eva"] == pytest.approx(1 / 3, abs=1e-3)


def test_fusing_one_set_is_refused(opened, expert, tmp_path):
    with pytest.raises(CaseError, match="at least two mask sets"):
        export(opened, tmp_path / "out", expert, fuse=FuseRule.STAPLE)


# ------------------------------------------------------------------------------------- layouts


def test_the_submission_zip_has_the_challenges_names_and_the_same_bytes_each_time(
    opened, expert, tmp_path
):
    for name in ("one", "two"):
        export(opened, tmp_path / name, expert, formats=(ExportFormat.CHALLENGE,))
    one, two = (tmp_path / name / "challenge/submission.zip" for name in ("one", "two"))
    assert contents(one) == contents(two)
    with zipfile.ZipFile(one) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            f"pred_segmentations/{case}.nii.gz" for case in ("A_1", "A_2", "B_1")
        ]
        archive.extractall(tmp_path / "unpacked")
    image = nib.load(tmp_path / "unpacked/pred_segmentations/A_1.nii.gz")
    assert image.get_data_dtype() == np.uint8
    np.testing.assert_array_equal(image.affine, nib.load(expert / "A_1.nii.gz").affine)


def test_a_submission_that_reads_back_otherwise_is_an_error_and_gets_no_name(
    opened, expert, tmp_path, monkeypatch
):
    read = zipfile.ZipFile.read
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *a: read(*a)[:-1] + b"?")
    with pytest.raises(SaveError, match="its content differs"):
        export(opened, tmp_path / "out", expert, formats=(ExportFormat.CHALLENGE,))
    assert not (tmp_path / "out/challenge/submission.zip").exists()


def test_the_nnunet_layout_opens_again_and_names_channels_and_labels(opened, expert, tmp_path):
    export(opened, tmp_path / "out", expert, formats=(ExportFormat.NNUNET,), dataset_number=7)
    folder = tmp_path / "out/nnunet/Dataset007_mydataset"
    described = json.loads((folder / "dataset.json").read_text())
    assert described["labels"] == {"background": 0, "tumour": 1}
    assert described["numTraining"] == 3
    assert list(described["channel_names"]) == ["0", "1", "2", "3"]
    found = find_data_set(folder)
    assert [case.case_id for case in found.cases] == ["A_1", "A_2", "B_1"]
    assert all(len(case.phases) == 4 and case.reference for case in found.cases)


@pytest.mark.night  # by day: its files and dataset.json by hand, above
@pytest.mark.parity
def test_nnunets_own_check_accepts_the_layout(opened, expert, tmp_path):
    nnunet = pytest.importorskip("nnunetv2.experiment_planning.verify_dataset_integrity")
    formats = (ExportFormat.NNUNET,)
    export(opened, tmp_path / "out", expert, formats=formats, profile=OrientationProfile.RAS)
    folder = tmp_path / "out/nnunet/Dataset501_mydataset"
    nnunet.verify_dataset_integrity(str(folder), num_processes=1)


def test_two_labels_of_one_name_or_called_background_are_no_nnunet_labels(opened, tmp_path):
    save_mask(tmp_path / "ana" / "A_1.nii.gz", blob() + blob(2, (0, 0, 0)))
    for names in (("tumour", "tumour"), ("tumour", "background")):
        rules = tuple(LabelRule(k + 1.0, k + 1, name) for k, name in enumerate(names))
        with pytest.raises(CaseError, match="give each target its own name"):
            export(
                opened,
                tmp_path / "out",
                tmp_path / "ana",
                rules=rules,
                formats=(ExportFormat.NNUNET,),
            )


def test_unequal_numbers_of_phases_need_a_number_of_channels(opened, expert, tmp_path):
    (opened.data_set.root / "images/B_1/B_1_0003.nii.gz").unlink()
    again = open_data_set(opened.data_set.root, tmp_path / "workspace")
    formats = (ExportFormat.NNUNET,)
    with pytest.raises(CaseError, match="B_1 has 3 and A_1 has 4") as refused:
        export(again, tmp_path / "out", expert, formats=formats)
    assert refused.value.remedies == (Remedy("channels", ("3",)),)
    export(again, tmp_path / "out", expert, formats=formats, n_channels=2)
    images = tmp_path / "out/nnunet/Dataset501_mydataset/imagesTr"
    assert len(list(images.iterdir())) == 6


def test_nnunet_needs_one_mask_of_each_case(opened, expert, tmp_path):
    save_mask(tmp_path / "ana" / "A_1.nii.gz", blob())
    with pytest.raises(CaseError, match="one mask per case for nnU-Net, but got 2 sets"):
        export(opened, tmp_path / "out", expert, tmp_path / "ana", formats=(ExportFormat.NNUNET,))


def test_bids_names_and_descriptions(opened, expert, tmp_path):
    export(opened, tmp_path / "out", expert, formats=(ExportFormat.BIDS,))
    names = names_below(tmp_path / "out" / "bids")
    assert "sub-A1/anat/sub-A1_space-orig_desc-expert_dseg.nii.gz" in names
    assert "sub-A1/anat/sub-A1_space-orig_desc-expert_dseg.json" in names
    assert (tmp_path / "out/bids/dseg.tsv").read_text() == "index\tname\n1\ttumour\n"
    described = json.loads((tmp_path / "out/bids/dataset_description.json").read_text())
    assert described["DatasetType"] == "derivative"


# ------------------------------------------------------------------------------------- reports


def test_tables_of_the_workspace_come_along_byte_for_byte(opened, expert, tmp_path):
    scores = opened.workspace.scores / "kinetic"
    scores.mkdir(parents=True)
    (scores / "case_scores.csv").write_text("case_id\nA_1\n")
    (scores / "run.json").write_text("{}")
    kinetics = opened.workspace.root / "kinetics"
    kinetics.mkdir()
    (kinetics / "kinetics.csv").write_text("case_id,ftv\n")
    export(opened, tmp_path / "out", expert)
    tables = tmp_path / "out" / "tables"
    assert names_below(tables) == ["kinetics/kinetics.csv", "scores/kinetic/case_scores.csv"]
    assert (tables / "kinetics/kinetics.csv").read_text() == "case_id,ftv\n"


def test_the_quality_report_names_each_finding_with_its_mask(opened, expert, tmp_path):
    outside = np.zeros(SHAPE, np.uint8)
    outside[2:5, 0:3, 0:4] = 1  # in the air, at the border
    save_mask(tmp_path / "ana" / "A_1.nii.gz", outside)
    shutil.copy(expert / "A_2.nii.gz", tmp_path / "ana" / "A_2.nii.gz")
    summary = export(opened, tmp_path / "out", tmp_path / "ana")
    assert [(item.case_id, item.light) for item in summary.exported] == [
        ("A_1", "red"),
        ("A_2", "green"),
    ]
    with (tmp_path / "out/quality.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(r["case_id"], r["masks"], r["light"], r["check"]) for r in rows}
    assert ("A_1", "ana", "red", "outside the body") in found
    assert ("A_1", "ana", "amber", "touches the border") in found
    page = (tmp_path / "out/quality.html").read_text()
    assert "1 red, 0 amber, 1 green" in page


def test_phases_of_another_place_are_a_red_finding_and_the_mask_is_still_written(
    opened, expert, tmp_path
):
    path = opened.data_set.root / "images/A_1/A_1_0002.nii.gz"
    image = nib.load(path)
    moved = image.affine.copy()
    moved[0, 3] += 4
    nib.save(nib.Nifti1Image(np.asanyarray(image.dataobj), moved), path)
    summary = export(opened, tmp_path / "out", expert, case_ids=("A_1",))
    assert summary.exported[0].light == "red"
    assert "phase 2 is up to 4 mm away from phase 0" in (tmp_path / "out/quality.csv").read_text()


# ------------------------------------------------------------------------------------- failing


def test_a_case_that_fails_in_the_middle_leaves_no_file(opened, expert, tmp_path, monkeypatch):
    write = export_writer.write_volume_job

    def full(array, grid, path):
        if path.name == "A_2.nii.gz" and "harmonised" in path.parts:
            raise SaveError(f"could not be saved in {path}, but No space left on device: free some")
        write(array, grid, path)

    monkeypatch.setattr(export_writer, "write_volume_job", full)
    summary = export(opened, tmp_path / "out", expert, profile=OrientationProfile.RAS)
    assert [failure.case_id for failure in summary.failures] == ["A_2"]
    assert "No space left" in summary.failures[0].reason
    assert not [name for name in names_below(tmp_path / "out") if "A_2" in name]
    assert summary.problems == ()  # the bundle is sound without the case


def test_an_export_without_a_case_packs_no_submission(opened, expert, tmp_path, monkeypatch):
    def full(array, grid, path):
        raise SaveError(f"could not be saved in {path}, but No space left on device: free some")

    monkeypatch.setattr(export_writer, "write_volume_job", full)
    wanted = (ExportFormat.CHALLENGE, ExportFormat.NNUNET, ExportFormat.BIDS)
    summary = export(opened, tmp_path / "out", expert, formats=wanted, n_channels=2)
    assert len(summary.failures) == 3
    assert names_below(tmp_path / "out") == ["manifest.json", "run.json"]


def stop_export(opened, expert, out, at, existing=Existing.REFUSE, **settings):
    """Stop an export at the first step whose text begins so."""
    settings = ExportSettings((MaskFolder(expert),), **settings)
    job = Stepped(export_bundle, opened, settings, out, existing)
    for step in job:
        if step.text.startswith(at):
            break
    else:
        raise AssertionError(f"no step {at}")
    job.close()


@pytest.mark.parametrize(
    "at", half_by_day(["A_1", "A_2", "B_1: ", "Writing the manifest", "Verifying"])
)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_stopped_export_leaves_nothing_and_runs_again_at_the_same_place(
    opened, expert, tmp_path, at, is_there
):
    (opened.workspace.root / "scores").mkdir(parents=True)
    (opened.workspace.root / "scores" / "case_scores.csv").write_text("case_id,dsc\n")
    out = tmp_path / "exports" / "out"
    if is_there:
        out.mkdir(parents=True)
    wanted = (ExportFormat.NIFTI, ExportFormat.BIDS)
    stop_export(opened, expert, out, at, formats=wanted)
    assert out.exists() == is_there
    assert not names_below(out)
    assert look_at_target(out).state is TargetState.FREE
    summary = export(opened, out, expert, formats=wanted)
    assert len(summary.exported) == 3
    assert not summary.problems


def test_what_somebody_put_beside_a_stopped_export_stays(opened, expert, tmp_path):
    out = tmp_path / "out"
    settings = ExportSettings((MaskFolder(expert),))
    job = Stepped(export_bundle, opened, settings, out)
    for step in job:
        if step.text.startswith("B_1"):
            (out / "letter.txt").write_text("mine")
            break
    job.close()
    assert names_below(out) == ["letter.txt", "run.json"]
    target = look_at_target(out)
    assert target.state is TargetState.CUT_OFF
    assert "unfinished" in target.text


def test_an_export_stopped_over_an_earlier_one_leaves_all_that_was_there(opened, expert, tmp_path):
    out = tmp_path / "out"
    export(opened, out, expert)
    before = set(names_below(out))
    stop_export(opened, expert, out, "A_2", Existing.OVERWRITE)
    assert set(names_below(out)) == before - {"manifest.json"}
    assert look_at_target(out).state is TargetState.CUT_OFF
    assert not export(opened, out, expert, existing=Existing.OVERWRITE).problems


def test_an_export_that_is_cancelled_inside_a_phase_leaves_nothing_of_its_case(
    opened, expert, tmp_path, monkeypatch
):
    monkeypatch.setattr(voxel_writer, "_YIELD_SECONDS", 0.0)
    out = tmp_path / "out"
    settings = ExportSettings((MaskFolder(expert),), with_images=True, with_quality=False)
    job = Stepped(export_bundle, opened, settings, out)
    for step in job:
        if "Writing A_2_0001.nii.gz" in step.text:
            break
    assert list(out.glob(".mamamia-*/images/A_2/.*.part"))  # half of it is there
    job.close()
    assert not [name for name in names_below(out) if "A_2" in name or ".part" in name]


def test_a_case_that_fails_while_it_is_replaced_keeps_its_older_files_whole(
    opened, expert, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    export(opened, out, expert)
    before = {path: path.read_bytes() for path in out.glob("A_2.*")}
    write = export_writer.write_provenance

    def full(provenance, path, **named):
        if path.name == "A_2.json":  # its mask is written by then
            raise SaveError("no space left")
        write(provenance, path, **named)

    monkeypatch.setattr(export_writer, "write_provenance", full)
    summary = export(opened, out, expert, existing=Existing.OVERWRITE)
    assert [failure.case_id for failure in summary.failures] == ["A_2"]
    assert {path: path.read_bytes() for path in out.glob("A_2.*")} == before
    assert not [name for name in names_below(out) if ".part" in name]


def test_files_of_an_earlier_export_are_named_when_replacing(opened, expert, tmp_path):
    out = tmp_path / "out"
    export(opened, out, expert)
    summary = export(opened, out, expert, existing=Existing.OVERWRITE, case_ids=("A_1",))
    assert "B_1.nii.gz: the file is not in the manifest" in summary.problems


def test_an_export_never_writes_into_the_data_set_or_the_masks(opened, expert, tmp_path):
    root = opened.data_set.root
    before = names_below(root)
    for out in (root, root / "images", expert, tmp_path):
        with pytest.raises(CaseError, match="the output folder not to contain the input"):
            export(opened, out, expert, existing=Existing.OVERWRITE)
    assert names_below(root) == before


def test_a_read_only_folder_and_a_file_in_its_place_are_save_errors(opened, expert, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SaveError, match="choose a different folder"):
        export(opened, tmp_path / "file", expert)


def test_a_disk_that_fills_up_is_one_failure_of_each_case_and_no_half_file(
    opened, expert, tmp_path, monkeypatch
):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    job = Stepped(export_bundle, opened, ExportSettings((MaskFolder(expert),)), tmp_path / "out")
    for step in job:
        if step.text.startswith("A_1"):
            break
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SaveError, match="free some space"):
        job()  # no case could be written, and then the manifest could not either
    assert names_below(tmp_path / "out") == ["run.json"]


def test_dicom_seg_of_a_nifti_case_is_refused_with_the_way_out(opened, expert, tmp_path):
    pytest.importorskip("highdicom")
    formats = (ExportFormat.DICOM_SEG,)
    summary = export(opened, tmp_path / "out", expert, formats=formats, case_ids=("A_1",))
    assert "choose the folder of its study" in summary.failures[0].reason
    assert summary.failures[0].remedies == (Remedy("study", ("DICOM_FOLDER",)),)
    with pytest.raises(CaseError, match=r"no-study.*check the path"):
        export(opened, tmp_path / "o", expert, formats=formats, study=tmp_path / "no-study")


def test_without_highdicom_the_missing_extra_is_named(opened, expert, tmp_path, monkeypatch):
    monkeypatch.setattr("napari_mamamia.services.export.seg.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[dicom\]"):
        export(opened, tmp_path / "out", expert, formats=(ExportFormat.DICOM_SEG,))


def test_read_back_grids_equal_the_turn_of_the_native_one(opened, expert, tmp_path):
    export(opened, tmp_path / "out", expert, profile=OrientationProfile.LPS, case_ids=("A_1",))
    native = read_header(tmp_path / "out/A_1.nii.gz").grid
    turned = read_labels(tmp_path / "out/harmonised/segmentations/expert/A_1.nii.gz")
    turn = reorientation_to(native, "LPS")
    assert turn.target.is_same_place(turned.grid)
    np.testing.assert_array_equal(turn.array_back(turned.dense()), array_of(expert / "A_1.nii.gz"))
