import os
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.mask_files import find_masks
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.layouts.find import find_data_set, recognise


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")


def add_case(root: Path, case_id: str, phases=(0, 1, 2), suffix=".nii.gz", name=None) -> Path:
    folder = root / "images" / case_id
    folder.mkdir(parents=True, exist_ok=True)
    touch(*(folder / f"{name or case_id}_{k:04d}{suffix}" for k in phases))
    return folder


def write_volume(path: Path, shape_xyz: tuple[int, ...]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(np.zeros(shape_xyz, np.int16), np.eye(4)), path)


def phase_names(case) -> list[str]:
    return [phase.files[0].name for phase in case.phases]


# ---- recognise


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["images/A/A_0000.nii.gz"], LayoutKind.MAMA_MIA),
        (["images/A/A_0000.nrrd"], LayoutKind.MAMA_MIA),
        (["imagesTr/A_0000.nii.gz"], LayoutKind.PATTERN),
        (["imagesTs/A_0000.nii"], LayoutKind.PATTERN),
        (["A_0000.nii.gz", "A_0001.nii.gz"], LayoutKind.CASE_FOLDER),
        (["photos/holiday.jpg"], None),
        (["images/holiday.jpg"], None),
        (["images/summer/holiday_0001.jpg"], None),
        (["report_0001.pdf", "A.nii.gz"], None),
        ([], None),
    ],
)
def test_recognise_tells_layouts_from_foreign_folders(tmp_path, files, kind):
    touch(*(tmp_path / file for file in files))
    assert recognise(tmp_path) is kind


@pytest.mark.parametrize("name", ["a.nii.gz", "a.nii", "a.nrrd", "A.NII.GZ"])
def test_recognise_takes_a_volume_file(tmp_path, name):
    touch(tmp_path / name)
    assert recognise(tmp_path / name) is LayoutKind.SINGLE_FILE


@pytest.mark.parametrize("name", ["a.png", "a.gz", ".nii.gz", "nii.gz", "a.nii.gz.part"])
def test_recognise_declines_other_files(tmp_path, name):
    touch(tmp_path / name)
    assert recognise(tmp_path / name) is None


def test_recognise_never_raises(tmp_path):
    assert recognise(tmp_path / "missing") is None
    assert recognise(Path("nul\0byte")) is None
    assert recognise(Path("x" * 5000)) is None


def test_recognise_sees_dicom_by_its_mark_whatever_the_name(tmp_path):
    series = tmp_path / "exam" / "1.2.840.7"
    series.mkdir(parents=True)
    (series / "IM0001").write_bytes(b"\0" * 128 + b"DICM")
    assert recognise(tmp_path / "exam") is LayoutKind.DICOM
    assert recognise(series) is LayoutKind.DICOM


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_recognise_never_waits_on_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert recognise(tmp_path) is None


def test_a_dcm_file_without_the_mark_is_not_dicom(tmp_path):
    (tmp_path / "a.dcm").write_text("no")
    assert recognise(tmp_path) is None


# ---- MAMA-MIA


def test_mama_mia_tree_gives_every_file_its_role(tmp_path):
    add_case(tmp_path, "DUKE_001")
    touch(
        tmp_path / "segmentations/expert/DUKE_001.nii.gz",
        tmp_path / "segmentations/automatic/DUKE_001.nii.gz",
        tmp_path / "patient_info_files/duke_001.json",
        tmp_path / "clinical_and_imaging_info.xlsx",
        tmp_path / "train_test_splits.csv",
    )
    data_set = find_data_set(tmp_path)
    (case,) = data_set.cases
    assert data_set.kind is LayoutKind.MAMA_MIA
    assert data_set.root == tmp_path
    assert phase_names(case) == [f"DUKE_001_000{k}.nii.gz" for k in range(3)]
    assert case.reference == tmp_path / "segmentations/expert/DUKE_001.nii.gz"
    assert case.automatic == tmp_path / "segmentations/automatic/DUKE_001.nii.gz"
    assert case.info == tmp_path / "patient_info_files/duke_001.json"
    assert data_set.clinical == tmp_path / "clinical_and_imaging_info.xlsx"
    assert data_set.splits == tmp_path / "train_test_splits.csv"
    assert case.problems == ()


def test_file_names_in_lower_case_belong_to_the_case_of_the_folder(tmp_path):
    add_case(tmp_path, "DUKE_001", name="duke_001")
    touch(tmp_path / "segmentations/expert/duke_001.nii.gz")
    (case,) = find_data_set(tmp_path).cases
    assert case.case_id == "DUKE_001"
    assert len(case.phases) == 3
    assert case.reference == tmp_path / "segmentations/expert/duke_001.nii.gz"
    assert case.problems == ()


def test_the_info_file_with_the_exact_name_wins_over_the_other_letter_case(tmp_path):
    add_case(tmp_path, "DUKE_001")
    info = tmp_path / "patient_info_files"
    touch(info / "duke_001.json", info / "DUKE_001.json")
    assert find_data_set(tmp_path).cases[0].info == info / "DUKE_001.json"


def test_cases_come_in_natural_order(tmp_path):
    for case_id in ("PH_10", "PH_2", "AB_30"):
        add_case(tmp_path, case_id)
    assert [case.case_id for case in find_data_set(tmp_path).cases] == ["AB_30", "PH_2", "PH_10"]


def test_uncompressed_and_nrrd_phases_are_accepted(tmp_path):
    folder = add_case(tmp_path, "A", (0,), ".nii")
    touch(folder / "A_0001.nrrd", folder / "A_0002.nii.gz")
    (case,) = find_data_set(tmp_path).cases
    assert phase_names(case) == ["A_0000.nii", "A_0001.nrrd", "A_0002.nii.gz"]
    assert case.problems == ()


def test_a_missing_phase_is_a_problem_that_names_phase_folder_and_remedy(tmp_path):
    folder = add_case(tmp_path, "A", (0, 2, 3))
    (case,) = find_data_set(tmp_path).cases
    assert case.problems == (
        f"phase 1 of A is missing: found 0, 2, 3 in {folder}; add A_0001.nii.gz, renumber, or "
        "choose another layout",
    )


def test_several_missing_phases_are_all_named(tmp_path):
    add_case(tmp_path, "A", (1, 3))
    (problem,) = find_data_set(tmp_path).cases[0].problems
    assert problem.startswith("phases 0, 2 of A are missing: found 1, 3 in ")


def test_a_phase_number_far_too_high_does_not_list_thousands(tmp_path):
    add_case(tmp_path, "A", (0, 9999))
    (problem,) = find_data_set(tmp_path).cases[0].problems
    assert "phases 1, 2, 3, 4, 5, ... 9998 of A are missing" in problem


def test_two_files_for_one_phase_are_a_problem_that_names_both(tmp_path):
    folder = add_case(tmp_path, "A", (0, 1, 2))
    touch(folder / "A_0001.nii")
    (case,) = find_data_set(tmp_path).cases
    assert len(case.problems) == 1
    assert "images/A/A_0001.nii and images/A/A_0001.nii.gz" in case.problems[0]
    assert str(tmp_path) in case.problems[0]


def test_two_masks_for_one_case_are_a_problem_and_neither_is_taken(tmp_path):
    add_case(tmp_path, "A")
    expert = tmp_path / "segmentations/expert"
    touch(expert / "A.nii.gz", expert / "A.nii")
    (case,) = find_data_set(tmp_path).cases
    assert case.reference is None
    assert "the reference mask of A" in case.problems[0]
    assert "A.nii" in case.problems[0]


def test_a_file_of_another_case_in_the_folder_is_a_problem(tmp_path):
    folder = add_case(tmp_path, "A")
    touch(folder / "B_0003.nii.gz")
    (case,) = find_data_set(tmp_path).cases
    assert len(case.phases) == 3
    assert "B_0003.nii.gz" in case.problems[0]


def test_an_empty_case_folder_is_listed_with_its_problem(tmp_path):
    add_case(tmp_path, "A")
    add_case(tmp_path, "B", ())
    _, empty = find_data_set(tmp_path).cases
    assert (empty.case_id, empty.phases) == ("B", ())
    assert "B_0000.nii.gz" in empty.problems[0]


def test_a_phase_file_that_holds_all_phases_is_a_problem_of_its_case(tmp_path):
    write_volume(tmp_path / "images/A/A_0000.nii.gz", (3, 4, 5, 6))
    add_case(tmp_path, "B")
    four_d, fine = find_data_set(tmp_path).cases
    assert "holds 6 volumes" in four_d.problems[0]
    assert fine.problems == ()


def test_a_case_of_one_true_3d_phase_has_no_problem(tmp_path):
    write_volume(tmp_path / "images/A/A_0000.nii.gz", (3, 4, 5))
    (case,) = find_data_set(tmp_path).cases
    assert case.problems == ()


def test_hidden_files_are_passed_over(tmp_path):
    folder = add_case(tmp_path, "A")
    touch(folder / "._A_0003.nii.gz", tmp_path / "images/.DS_Store", tmp_path / "images/note.txt")
    (tmp_path / "images/.hidden").mkdir()
    (case,) = find_data_set(tmp_path).cases
    assert len(case.phases) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that keeps letter case")
def test_ids_that_differ_in_letter_case_only_are_a_problem(tmp_path):
    add_case(tmp_path, "Duke_1")
    add_case(tmp_path, "DUKE_1")
    (case,) = find_data_set(tmp_path).cases
    (problem,) = case.problems
    assert "images/Duke_1/" in problem
    assert "images/DUKE_1/" in problem


def test_spaces_and_letters_of_any_alphabet_are_fine(tmp_path):
    root = tmp_path / "Brüste 乳房 données"
    add_case(root, "Fall ä 1")
    touch(root / "segmentations/expert/Fall ä 1.nii.gz")
    (case,) = find_data_set(root).cases
    assert case.case_id == "Fall ä 1"
    assert case.reference is not None
    assert len(case.phases) == 3


def test_the_images_folder_leads_to_its_data_set(tmp_path):
    add_case(tmp_path, "A")
    touch(tmp_path / "segmentations/expert/A.nii.gz")
    data_set = find_data_set(tmp_path / "images")
    assert data_set.root == tmp_path
    assert data_set.cases[0].reference is not None


def test_one_case_folder_of_a_data_set_gives_this_case_with_its_masks(tmp_path):
    add_case(tmp_path, "A")
    folder = add_case(tmp_path, "B")
    touch(tmp_path / "segmentations/expert/B.nii.gz")
    data_set = find_data_set(folder)
    assert data_set.kind is LayoutKind.CASE_FOLDER
    assert data_set.root == tmp_path
    assert [case.case_id for case in data_set.cases] == ["B"]
    assert data_set.cases[0].reference == tmp_path / "segmentations/expert/B.nii.gz"


# ---- times.json


def test_times_json_gives_its_case_times(tmp_path):
    add_case(tmp_path, "A")
    add_case(tmp_path, "B")
    (tmp_path / "times.json").write_text('{"case_id": "a", "times_s": [0, 82.5, 147.25]}')
    a, b = find_data_set(tmp_path).cases
    assert [phase.time_s for phase in a.phases] == [0, 82.5, 147.25]
    assert [phase.time_s for phase in b.phases] == [None, None, None]


def test_times_json_with_another_count_is_a_problem(tmp_path):
    add_case(tmp_path, "A")
    (tmp_path / "times.json").write_text('{"case_id": "A", "times_s": [0, 82.5]}')
    assert "2 times for the 3 phases" in find_data_set(tmp_path).cases[0].problems[0]


@pytest.mark.parametrize(
    "text",
    ["{", '{"times_s": [0, 1, 2]}', '{"case_id": "A", "times_s": [0, 2, 1]}', '[{"times_s": "x"}]'],
)
def test_a_damaged_times_json_is_refused_by_name(tmp_path, text):
    add_case(tmp_path, "A")
    (tmp_path / "times.json").write_text(text)
    with pytest.raises(FormatError, match=r"times\.json"):
        find_data_set(tmp_path)


def test_a_times_json_of_another_program_is_left_alone(tmp_path):
    add_case(tmp_path, "A")
    (tmp_path / "times.json").write_text('{"total": 3}')
    assert find_data_set(tmp_path).cases[0].phases[0].time_s is None


# ---- nnU-Net raw


def test_nnunet_raw_pairs_images_and_labels_of_both_halves(tmp_path):
    touch(
        *(tmp_path / f"imagesTr/A_000{k}.nii.gz" for k in range(3)),
        *(tmp_path / f"imagesTs/B_000{k}.nii.gz" for k in range(2)),
        tmp_path / "labelsTr/A.nii.gz",
        tmp_path / "dataset.json",
    )
    data_set = find_data_set(tmp_path)
    a, b = data_set.cases
    assert (data_set.kind, data_set.layout) == (LayoutKind.PATTERN, "nnunet")
    assert (a.case_id, len(a.phases), a.reference) == ("A", 3, tmp_path / "labelsTr/A.nii.gz")
    assert (b.case_id, len(b.phases), b.reference) == ("B", 2, None)


def test_an_nnunet_case_in_both_halves_is_a_problem(tmp_path):
    touch(
        *(tmp_path / f"imagesTr/A_000{k}.nii.gz" for k in range(2)),
        *(tmp_path / f"imagesTs/A_000{k}.nii.gz" for k in range(2)),
    )
    problems = [problem for case in find_data_set(tmp_path).cases for problem in case.problems]
    assert len(problems) == 1


def test_images_tr_itself_leads_to_its_labels(tmp_path):
    touch(*(tmp_path / f"imagesTr/A_000{k}.nii.gz" for k in range(2)))
    touch(tmp_path / "labelsTr/A.nii.gz", tmp_path / "imagesTs/B_0000.nii.gz")
    data_set = find_data_set(tmp_path / "imagesTr")
    assert (data_set.root, data_set.kind) == (tmp_path, LayoutKind.PATTERN)
    assert [(c.case_id, c.reference) for c in data_set.cases] == [
        ("A", tmp_path / "labelsTr/A.nii.gz")
    ]


# ---- one case, one file


def test_a_folder_with_phases_directly_in_it_is_a_case(tmp_path):
    touch(*(tmp_path / f"scan_1_000{k}.nii.gz" for k in range(4)))
    data_set = find_data_set(tmp_path)
    assert data_set.kind is LayoutKind.CASE_FOLDER
    assert [(case.case_id, len(case.phases)) for case in data_set.cases] == [("scan_1", 4)]


def test_a_4d_file_gives_one_phase_for_each_volume(tmp_path):
    path = tmp_path / "dyn.nii.gz"
    write_volume(path, (4, 3, 2, 5))
    data_set = find_data_set(path)
    (case,) = data_set.cases
    assert (data_set.kind, case.case_id) == (LayoutKind.SINGLE_FILE, "dyn")
    assert [(phase.files, phase.volume) for phase in case.phases] == [
        ((path,), volume) for volume in range(5)
    ]


def test_a_3d_file_gives_one_phase(tmp_path):
    write_volume(tmp_path / "a b.nii", (4, 3, 2))
    (case,) = find_data_set(tmp_path / "a b.nii").cases
    assert (case.case_id, len(case.phases)) == ("a b", 1)


# ---- nothing there


@pytest.mark.parametrize("path", ["missing", "empty", "note.txt"])
def test_a_path_without_any_case_is_refused_by_name(tmp_path, path):
    (tmp_path / "empty").mkdir()
    touch(tmp_path / "note.txt")
    with pytest.raises(FormatError, match=path):
        find_data_set(tmp_path / path)


def test_the_refusal_says_what_was_looked_for_and_what_to_open(tmp_path):
    add_case(tmp_path / "trial", "A", (0,))
    (tmp_path / "notes").mkdir()
    with pytest.raises(FormatError) as caught:
        find_data_set(tmp_path)
    assert "images/ID/ID_0000.nii.gz" in str(caught.value)
    assert f"open {tmp_path / 'trial'}" in str(caught.value)


def test_listing_leaves_the_data_set_as_it_was(tmp_path):
    add_case(tmp_path, "A")
    before = sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*"))
    find_data_set(tmp_path)
    assert sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")) == before


# ---- masks for scoring


def test_find_masks_maps_ids_to_files_and_passes_sidecars_over(tmp_path):
    touch(
        *(tmp_path / name for name in ("B_10.nii.gz", "B_2.nii", "A.nrrd")),
        *(tmp_path / name for name in ("A.json", "summary.json", ".A.nii.gz", "readme.txt")),
        tmp_path / "deeper/C.nii.gz",
    )
    masks = find_masks(tmp_path)
    assert list(masks.items()) == [
        ("A", tmp_path / "A.nrrd"),
        ("B_2", tmp_path / "B_2.nii"),
        ("B_10", tmp_path / "B_10.nii.gz"),
    ]


def test_two_mask_files_of_one_case_are_refused_with_both_names(tmp_path):
    touch(tmp_path / "A.nii", tmp_path / "A.nii.gz")
    with pytest.raises(FormatError, match=r"A\.nii and A\.nii\.gz"):
        find_masks(tmp_path)


def test_a_folder_without_masks_gives_none(tmp_path):
    assert dict(find_masks(tmp_path)) == {}


def test_a_missing_mask_folder_is_refused_by_name(tmp_path):
    with pytest.raises(FormatError, match="nowhere"):
        find_masks(tmp_path / "nowhere")


def test_a_file_given_as_mask_folder_is_refused(tmp_path):
    touch(tmp_path / "A.nii.gz")
    with pytest.raises(FormatError, match=r"A\.nii\.gz"):
        find_masks(tmp_path / "A.nii.gz")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root reads every folder")
def test_an_unreadable_folder_is_foreign_and_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o000)
    assert recognise(folder) is None
    with pytest.raises(FormatError, match="locked"):
        find_masks(folder)


# ---- real files


@pytest.mark.real
def test_the_real_slice_lists_as_one_case_of_six_timed_phases(real_data):
    data_set = find_data_set(real_data("dce_slice"))
    (case,) = data_set.cases
    assert data_set.kind is LayoutKind.MAMA_MIA
    assert (case.case_id, len(case.phases), case.problems) == ("REAL_001", 6, ())
    assert [phase.time_s for phase in case.phases] == pytest.approx(
        [0.0, 82.15, 147.87, 230.02, 312.17, 394.32]
    )


@pytest.mark.real
def test_a_real_nrrd_file_lists_as_a_case(real_data):
    data_set = find_data_set(real_data("breast1") / "breast1_image.nrrd")
    assert [case.case_id for case in data_set.cases] == ["breast1_image"]
    assert recognise(real_data("breast1")) is None
