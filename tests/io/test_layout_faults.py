"""What is wrong in folders of known layouts is reported, and their variants are read."""

import json
import zipfile

import nibabel
import numpy as np
import pytest
from tests.dicom_phantoms import write_phase

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.layouts.label_names import find_tumour_label, read_tumour


def save(path, n_frames=1, values=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (3, 3, 2) if n_frames == 1 else (3, 3, 2, n_frames)
    values = np.zeros(shape, np.int16) if values is None else values
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)


def phases_of(case, root):
    return [phase.files[0].relative_to(root).as_posix() for phase in case.phases]


@pytest.mark.parametrize("path", ["data/S/S_1/P{}", "images/S_1/S_1_000{}"])
def test_empty_file_is_a_problem_of_its_case(tmp_path, path):
    for phase in (0, 1):
        save(tmp_path / "set" / f"{path.format(phase)}.nii.gz")
    (tmp_path / "set" / f"{path.format(1)}.nii.gz").write_bytes(b"")
    (case,) = find_data_set(tmp_path / "set").cases
    assert len(case.problems) == 1
    assert "0 bytes" in case.problems[0]


@pytest.mark.parametrize(("folder", "missing"), [("VIBRANT", "VIBRANT"), ("VIBRANT+C1", "+C1")])
def test_missing_phase_folder_of_breastdm_is_a_problem(tmp_path, folder, missing):
    for phase, name in enumerate(("VIBRANT", "VIBRANT+C1", "VIBRANT+C2")):
        if name != folder:
            where = tmp_path / "set/Benign/BreaDM-Be-1" / name
            write_phase(where, phase, SeriesInstanceUID=f"2.25.{phase + 1}")
    (case,) = find_data_set(tmp_path / "set").cases
    assert missing in case.problems[0]


def test_scene_of_slicer_is_read_by_the_names_in_it(tmp_path):
    volumes = {"vol_a.nrrd": "DCE pre", "vol_b.nrrd": "DCE post 1", "vol_c.nrrd": "T2 fs"}
    nodes = "".join(
        f'<Volume id="v{k}" name="{name}" references="storage:s{k};"/>'
        f'<VolumeArchetypeStorage id="s{k}" fileName="Data/{file}"/>'
        for k, (file, name) in enumerate(volumes.items())
    )
    root = tmp_path / "set"
    root.mkdir()
    with zipfile.ZipFile(root / "PAT_1.mrb", "w") as archive:
        archive.writestr("PAT_1/PAT_1.mrml", f"<MRML>{nodes}</MRML>")
        for file in volumes:
            archive.writestr(f"PAT_1/Data/{file}", "NRRD0004\n")
    (case,) = find_data_set(root).cases
    assert [phase.files[0].name for phase in case.phases] == ["vol_a.nrrd", "vol_b.nrrd"]


def test_studies_in_folders_of_uids_are_visits_by_date(tmp_path):
    root = tmp_path / "set"
    for study, date in (("1.3.6.9", "20200301"), ("1.3.6.10", "20190301")):
        for phase in (0, 1, 2):
            write_phase(
                root / "P_1" / study / f"1.3.6.9.{phase}",
                phase,
                StudyInstanceUID=study,
                SeriesInstanceUID=f"{study}.{phase}",
                SeriesNumber=phase + 1,
                StudyDate=date,
                AcquisitionTime=f"10{phase:02d}00",
            )
    first, second = find_data_set(root).cases
    assert (first.case_id, first.visit.index) == ("P_1_2019-03-01", 0)
    assert (second.case_id, second.visit.index) == ("P_1_2020-03-01", 1)
    assert (len(first.phases), first.problems) == (3, ())


def test_two_studies_of_one_day_keep_ids_of_their_own(tmp_path):
    root = tmp_path / "set"
    for patient, days in (("P_1", ("20200301", "20200301")), ("P_2", ("20200301", "20200302"))):
        for number, day in enumerate(days):
            study = f"1.3.6.{patient[-1]}.{number + 1}"
            for phase in (0, 1, 2):
                write_phase(
                    root / patient / study / f"{study}.{phase}",
                    phase,
                    StudyInstanceUID=study,
                    SeriesInstanceUID=f"{study}.{phase}",
                    SeriesNumber=phase + 1,
                    StudyDate=day,
                    AcquisitionTime=f"10{phase:02d}00",
                )
    cases = find_data_set(root).cases
    ids = [case.case_id for case in cases]
    assert len(set(ids)) == len(ids) == 4
    assert sorted(ids)[2:] == ["P_2_2020-03-01", "P_2_2020-03-02"]
    assert {case.visit.name for case in cases if case.patient == "P_1"} == {
        "1.3.6.1.1",
        "1.3.6.1.2",
    }


@pytest.mark.parametrize(
    "files",
    [
        ["P0", "P1", "P2"],
        ["Pre", "Post_1"],
        ["01-05-2019/volume_phase0", "01-05-2019/volume_phase1"],
    ],
)
def test_folder_of_one_case_opens(tmp_path, files):
    root = tmp_path / "ISPY2-Volumes" / "PAT_7"
    for file in files:
        save(root / f"{file}.nii.gz")
    data_set = find_data_set(root)
    (case,) = data_set.cases
    assert (data_set.root, case.patient) == (root, "PAT_7")
    assert phases_of(case, root) == [f"{file}.nii.gz" for file in files]
    assert any("outside" in warning for warning in data_set.warnings)


def write_nnunet(root, labels, channels):
    values = np.zeros((3, 3, 2), np.uint8)
    values[0], values[1, 0] = 1, 2
    for channel in range(len(channels)):
        save(root / f"imagesTr/c1_{channel:04}.nii.gz")
    save(root / "labelsTr/c1.nii.gz", values=values)
    content = {"channel_names": dict(enumerate(channels)), "labels": labels}
    (root / "dataset.json").write_text(json.dumps(content))


def test_label_of_the_tumour_is_found_by_its_name(tmp_path):
    write_nnunet(tmp_path, {"background": 0, "breast": 1, "tumour": 2}, ["pre", "post1"])
    data_set = find_data_set(tmp_path)
    (case,) = data_set.cases
    assert {mask.name: (mask.label, mask.region) for mask in case.masks} == {
        "label": (2, "tumour"),
        "label breast": (1, "breast"),
    }
    assert case.reference_label == 2
    assert any("only tumour is read" in warning for warning in data_set.warnings)


def test_channels_that_are_no_phases_are_left_out(tmp_path):
    write_nnunet(tmp_path, {"background": 0, "tumour": 1}, ["FLAIR", "T1w", "t1gd", "T2w"])
    data_set = find_data_set(tmp_path)
    (case,) = data_set.cases
    assert phases_of(case, tmp_path) == ["imagesTr/c1_0001.nii.gz", "imagesTr/c1_0002.nii.gz"]
    assert any("do not state their phase" in warning for warning in data_set.warnings)


def test_decathlon_list_of_4d_files_gives_their_frames(tmp_path):
    listed = [{"image": "./imagesTr/b_001.nii.gz", "label": "./labelsTr/b_001.nii.gz"}]
    save(tmp_path / "imagesTr/b_001.nii.gz", n_frames=3)
    save(tmp_path / "labelsTr/b_001.nii.gz")
    (tmp_path / "dataset.json").write_text(json.dumps({"training": listed}))
    (case,) = find_data_set(tmp_path).cases
    assert [phase.volume for phase in case.phases] == [0, 1, 2]


def test_folds_of_odelia_are_read_and_a_parted_patient_is_reported(tmp_path):
    rows = ["UID,Fold,Split"]
    for patient in ("A", "B"):
        for side in ("left", "right"):
            for name in ("Pre", "Post_1"):
                save(tmp_path / f"UKA/data_unilateral/{patient}_{side}/{name}.nii.gz")
            rows.append(f"{patient}_{side},0,train")
            part = "val" if (patient, side) == ("B", "right") else "train"
            rows.append(f"{patient}_{side},1,{part}")
    table = tmp_path / "UKA/metadata_unilateral/split.csv"
    table.parent.mkdir()
    table.write_text("\n".join(rows))
    data_set = find_data_set(tmp_path)
    assert {case.split for case in data_set.cases} == {"fold 0 train"}
    assert [case.columns["fold 1"] for case in data_set.cases] == ["train", "train", "train", "val"]
    assert any("1 patients have exams" in warning for warning in data_set.warnings)


def write_bids(root, names, suffix=".json"):
    for number, name in enumerate(names):
        save(root / f"sub-A/anat/sub-A_{name}T1w.nii.gz")
        sidecar = root / f"sub-A/anat/sub-A_{name}T1w{suffix}"
        sidecar.write_text(json.dumps({"AcquisitionTime": f"10:0{number}:00"}))


@pytest.mark.parametrize("name", ["bids", "BIDS"])
def test_letter_case_of_layouts_and_sidecars_does_not_count(tmp_path, name):
    write_bids(tmp_path, ["run-1_", "run-2_"], ".JSON")
    (case,) = find_data_set(tmp_path, name).cases
    assert [phase.time_s for phase in case.phases] == [0, 60]


def test_another_acquisition_of_a_bids_session_is_no_phase(tmp_path):
    dynamic = [f"acq-dyn_run-{run}_" for run in (1, 2, 3)]
    write_bids(tmp_path, [*dynamic, "acq-hires_run-4_", "acq-hires_run-5_"])
    data_set = find_data_set(tmp_path)
    (case,) = data_set.cases
    assert [phase.files[0].name for phase in case.phases] == [
        f"sub-A_{name}T1w.nii.gz" for name in dynamic
    ]
    assert [role for _, role in data_set.others] == ["another series"] * 2
    assert any("several series" in warning for warning in data_set.warnings)


@pytest.mark.parametrize(
    "names",
    [
        ["ce-none_run-1_", "ce-gd_run-1_", "ce-gd_run-2_"],
        ["ce-none_", "ce-gd_run-1_", "ce-gd_run-2_"],
        ["run-1_", "ce-gd_run-2_", "ce-gd_run-3_"],
    ],
)
def test_images_with_contrast_agent_follow_those_without(tmp_path, names):
    write_bids(tmp_path, names)
    (case,) = find_data_set(tmp_path).cases
    assert not case.problems
    assert [phase.files[0].name for phase in case.phases] == [
        f"sub-A_{name}T1w.nii.gz" for name in names
    ]


def test_patients_that_differ_by_letter_case_are_one_with_a_warning(tmp_path):
    for patient, date in (("PAT_1", "01-05-2019"), ("pat_1", "01-05-2020")):
        for phase in (0, 1):
            save(tmp_path / f"X-Volumes/{patient}/{date}/volume_phase{phase}.nii.gz")
    data_set = find_data_set(tmp_path)
    assert len({case.patient for case in data_set.cases}) == 1
    assert [case.visit.index for case in data_set.cases] == [0, 1]
    assert any("letter case" in warning for warning in data_set.warnings)


def test_files_of_no_case_of_mama_mia_are_reported(tmp_path):
    for path in ("images/A/A_0000", "images/A/A_0001", "images/A/A_T2", "segmentations/expert/B"):
        save(tmp_path / f"{path}.nii.gz")
    data_set = find_data_set(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in data_set.leftover] == [
        "images/A/A_T2.nii.gz",
        "segmentations/expert/B.nii.gz",
    ]
    assert len(data_set.warnings) == 1


@pytest.mark.parametrize("visit", ["2020-01-05", "baseline", "left", "T0"])
def test_a_visit_or_side_is_never_taken_for_the_patient(tmp_path, visit):
    for patient in ("A", "B"):
        for name in ("Pre", "Post_1"):
            save(tmp_path / "set" / patient / visit / f"{name}.nii.gz")
        visit = visit.replace("2020", "2021")
    with pytest.raises(ValueError, match="proposal"):
        find_data_set(tmp_path / "set")


def test_missing_channel_of_nnunet_is_a_problem(tmp_path):
    write_nnunet(tmp_path, {"background": 0, "tumour": 1}, ["pre", "post1", "post2"])
    (tmp_path / "imagesTr/c1_0002.nii.gz").unlink()
    (case,) = find_data_set(tmp_path).cases
    assert "post2" in case.problems[0]


def test_missing_last_phase_is_a_problem_where_the_layout_fixes_all(tmp_path):
    for name in ("A", "B"):
        save(tmp_path / f"mha/input/{name}.nii.gz")
        save(tmp_path / f"mha/ground_truth/{name}.nii.gz")
    (tmp_path / "mha/ground_truth/B.nii.gz").unlink()
    first, second = find_data_set(tmp_path).cases
    assert not first.problems
    assert "phase 1 of B is missing" in second.problems[0]


def test_masks_of_one_name_are_all_kept_and_reported(tmp_path):
    write_bids(tmp_path, ["run-1_", "run-2_"])
    for reader in ("a", "b"):
        save(tmp_path / f"derivatives/{reader}/sub-A/anat/sub-A_label-lesion_mask.nii.gz")
    (case,) = find_data_set(tmp_path).cases
    assert [mask.name for mask in case.masks] == ["lesion", "lesion 2"]
    assert "several masks called lesion" in case.warnings[0]


@pytest.mark.parametrize(
    ("labels", "tumour"),
    [
        ({"background": 0, "breast": 1, "tumour": 2}, 2),
        ({"0": "background", "1": "Tumor", "2": "breast"}, 1),
        ({"background": 0, "tumour": 1}, None),
        ({"background": 0, "whole": [1, 2], "core": [2]}, None),
    ],
)
def test_tumour_of_named_labels_is_found(tmp_path, labels, tumour):
    write_nnunet(tmp_path, labels, ["pre", "post1"])
    assert find_tumour_label(tmp_path / "labelsTr/c1.nii.gz") == tumour
    content = read_tumour(tmp_path / "labelsTr/c1.nii.gz")
    assert np.count_nonzero(content.foreground()) == {2: 2, 1: 6, None: 8}[tumour]


@pytest.mark.parametrize("names", [("mass a", "mass b"), ("breast", "fat")])
def test_named_labels_without_one_tumour_are_refused_with_candidates(tmp_path, names):
    labels = {"background": 0, names[0]: 1, names[1]: 2}
    write_nnunet(tmp_path, labels, ["pre", "post1"])
    with pytest.raises(FormatError) as refusal:
        find_tumour_label(tmp_path / "labelsTr/c1.nii.gz")
    assert [(one.option, one.values) for one in refusal.value.remedies] == [
        ("label", ("1",)),
        ("label", ("2",)),
    ]
