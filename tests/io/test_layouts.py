"""Public data sets as they lie on disk, with the names of their releases."""

import json
import os
from pathlib import Path

import nibabel
import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.layouts.case_list import order_phases
from napari_mamamia.io.layouts.find import find_data_set, own_layout_file, recognise
from napari_mamamia.io.layouts.known import list_layouts
from napari_mamamia.io.layouts.layout import parse_layouts
from napari_mamamia.io.layouts.manifest import list_missing_series
from napari_mamamia.io.layouts.pattern import PathPattern
from napari_mamamia.io.layouts.propose import propose_layout
from napari_mamamia.io.layouts.tree import list_tree

NII = ".nii.gz"


def make_tree(root: Path, files: list[str], texts: dict[str, str] | None = None) -> Path:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")
    for file, text in (texts or {}).items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def summarise(root: Path, data_set) -> dict[tuple[str, str, str], tuple[list[str], list[str]]]:
    """The phases and masks of each exam, as paths below the root."""
    return {
        (case.patient, case.visit.name if case.visit else "", case.side): (
            [phase.files[0].relative_to(root).as_posix() for phase in case.phases],
            [mask.path.relative_to(root).as_posix() for mask in case.masks],
        )
        for case in data_set.cases
    }


def named(template: str, numbers) -> list[str]:
    return [template.format(number) for number in numbers]


LMBM = "Reconstructed_Datasets/ISPY2-Volumes/ISPY2-100899/{}/volume_phase{}.nii.gz"
ODELIA = "UKA/data_unilateral/UKA_1_{}/{}.nii.gz"
DCEDL = "BreastDCEDL_ISPY2_min_crop/dce/ISPY2-1_spy2_vis1_dce_aqc_{}.nii.gz"
BIDS = "sub-01/ses-{}/anat/sub-01_ses-{}_acq-dce_run-{}_T1w.nii.gz"
NNUNET = "nnUNet_raw/Dataset932_Breast/"

TREES = {
    "longitudinal-mama-mia": (
        [LMBM.format(date, k) for date in ("12-20-2002", "01-15-2003") for k in range(3)],
        {},
        {
            ("ISPY2_100899", date, ""): ([LMBM.format(date, k) for k in range(3)], [])
            for date in ("12-20-2002", "01-15-2003")
        },
    ),
    "odelia": (
        [
            ODELIA.format(side, name)
            for side in ("left", "right")
            for name in ("Pre", "Post_1", "Post_2", "Sub_1", "T2")
        ],
        {"UKA/metadata_unilateral/annotation.csv": "UID,PatientID,Lesion\nUKA_1_left,UKA_1,2\n"},
        {
            ("UKA_1", "", side): ([ODELIA.format(side, n) for n in ("Pre", "Post_1", "Post_2")], [])
            for side in ("left", "right")
        },
    ),
    "breastdcedl": (
        [
            *named(DCEDL, range(11)),
            "BreastDCEDL_ISPY2_min_crop/mask/ISPY2-1_spy2_vis1_mask.nii.gz",
            *named("BreastDCEDL_DUKE_min_crop/crop_min_dce/D_1_duke_aqc_{}.nii.gz", range(3)),
        ],
        {},
        {
            ("ISPY2-1", "1", ""): (
                named(DCEDL, range(11)),
                ["BreastDCEDL_ISPY2_min_crop/mask/ISPY2-1_spy2_vis1_mask.nii.gz"],
            ),
            ("D_1", "", ""): (
                named("BreastDCEDL_DUKE_min_crop/crop_min_dce/D_1_duke_aqc_{}.nii.gz", range(3)),
                [],
            ),
        },
    ),
    "mama-synth": (
        [*named("images/P1/P1_{}.nii.gz", range(12)), "segmentations/P1.nii.gz"],
        {},
        {
            ("P1", "", ""): (
                named("images/P1/P1_{}.nii.gz", range(12)),
                ["segmentations/P1.nii.gz"],
            )
        },
    ),
    "mama-synth-2d": (
        ["mha/input/P1.mha", "mha/ground_truth/P1.mha", "mha/mask/P1.mha"],
        {},
        {("P1", "", ""): (["mha/input/P1.mha", "mha/ground_truth/P1.mha"], ["mha/mask/P1.mha"])},
    ),
    "breastmrisegmentator": (
        [*named("in/c1/c1_phase{}.nii.gz", range(5)), "predictions/c1.nii.gz"],
        {},
        {("c1", "", ""): (named("in/c1/c1_phase{}.nii.gz", range(5)), ["predictions/c1.nii.gz"])},
    ),
    "duke-nifti": (
        [f"data/Breast_MRI_001/{name}.nii.gz" for name in ("Pre", "Post_1", "Post_2", "T1", "Sub")],
        {},
        {
            ("Breast_MRI_001", "", ""): (
                [f"data/Breast_MRI_001/{name}.nii.gz" for name in ("Pre", "Post_1", "Post_2")],
                [],
            )
        },
    ),
    "bids": (
        [BIDS.format(visit, visit, run) for visit in ("T1", "T0") for run in (1, 2, 3)],
        {"sub-01/sub-01_sessions.tsv": "session_id\tacq_time\nses-T0\t2002-10-26T10:00:00\n"},
        {
            ("01", visit, ""): ([BIDS.format(visit, visit, run) for run in (1, 2, 3)], [])
            for visit in ("T0", "T1")
        },
    ),
    "nnunet": (
        [
            *named(f"{NNUNET}imagesTr/c_{{:04d}}.nii.gz", range(3)),
            f"{NNUNET}labelsTr/c.nii.gz",
            "nnUNet_results/Dataset932_Breast/T__P__3d/fold_0/validation/c.nii.gz",
        ],
        {f"{NNUNET}dataset.json": '{"channel_names": {"0": "pre", "1": "post1", "2": "sub1"}}'},
        {
            ("c", "", ""): (
                named(f"{NNUNET}imagesTr/c_{{:04d}}.nii.gz", range(2)),
                [
                    f"{NNUNET}labelsTr/c.nii.gz",
                    "nnUNet_results/Dataset932_Breast/T__P__3d/fold_0/validation/c.nii.gz",
                ],
            )
        },
    ),
    "grand-challenge": (
        [
            "input/images/pre-contrast-breast-mri/1f.mha",
            "input/images/post-contrast-breast-mri/2a.mha",
            "output/images/breast-tumour-segmentation/output.mha",
        ],
        {"input/inputs.json": '[{"image": {"name": "CASE_17.mha"}}]'},
        {
            ("CASE_17", "", ""): (
                [
                    "input/images/pre-contrast-breast-mri/1f.mha",
                    "input/images/post-contrast-breast-mri/2a.mha",
                ],
                ["output/images/breast-tumour-segmentation/output.mha"],
            )
        },
    ),
    "monai": (
        [f"vols/b01/{name}.nii.gz" for name in ("pre", "post1", "post2", "seg")],
        {
            "dataset.json": json.dumps(
                {
                    "training": [
                        {
                            "image": [
                                f"./vols/b01/{name}.nii.gz" for name in ("pre", "post1", "post2")
                            ],
                            "label": "vols/b01/seg.nii.gz",
                        }
                    ]
                }
            )
        },
        {
            ("b01", "", ""): (
                [f"vols/b01/{name}.nii.gz" for name in ("pre", "post1", "post2")],
                ["vols/b01/seg.nii.gz"],
            )
        },
    ),
    "p0-pn": (
        [*named("data/GD/GD_1/P{}.nii.gz", range(6)), "data/GD_gt/GD_1.nii.gz"],
        {"data/train.txt": "GD_1\n"},
        {
            ("GD_1", "", ""): (
                named("data/GD/GD_1/P{}.nii.gz", range(6)),
                ["data/GD_gt/GD_1.nii.gz"],
            )
        },
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_public_layout_gives_phases_and_masks(tmp_path, name):
    files, texts, expected = TREES[name]
    root = make_tree(tmp_path / "set", files, texts)
    data_set = find_data_set(root)
    assert (data_set.kind, data_set.layout) == (LayoutKind.PATTERN, name)
    assert recognise(root) is LayoutKind.PATTERN
    assert summarise(root, data_set) == expected
    assert not any(case.problems for case in data_set.cases)


@pytest.mark.parametrize("name", [name for name in TREES if name not in ("monai", "bids")])
def test_letter_case_of_names_does_not_count(tmp_path, name):
    files, _, expected = TREES[name]
    root = make_tree(tmp_path / "set", [file.upper() for file in files], {})
    data_set = find_data_set(root, name)
    assert len(data_set.cases) == len(expected)


@pytest.mark.parametrize("name", [name for name in TREES if name not in ("mama-synth-2d", "monai")])
def test_missing_phase_is_a_problem_of_its_case(tmp_path, name):
    files, texts, expected = TREES[name]
    phases = next(iter(expected.values()))[0]
    kept = [file for file in files if file != phases[0]]
    data_set = find_data_set(make_tree(tmp_path / "set", kept, texts), name)
    problems = [problem for case in data_set.cases for problem in case.problems]
    assert any("is missing" in problem for problem in problems)
    assert len(data_set.cases) == len(expected)


@pytest.mark.parametrize(
    "name", [name for name in TREES if name not in ("monai", "grand-challenge")]
)
def test_doubled_phase_is_a_problem_of_its_case(tmp_path, name):
    files, texts, expected = TREES[name]
    phase = next(iter(expected.values()))[0][1]
    twin = phase.replace(".nii.gz", ".nrrd").replace(".mha", ".nii.gz")
    data_set = find_data_set(make_tree(tmp_path / "set", [*files, twin], texts), name)
    problems = [problem for case in data_set.cases for problem in case.problems]
    assert any("exists 2 times" in problem for problem in problems)


@pytest.mark.parametrize("name", TREES)
def test_foreign_volumes_are_listed_and_not_used(tmp_path, name):
    files, texts, expected = TREES[name]
    foreign = "notes/scan of the phantom.nii.gz"
    root = make_tree(tmp_path / "set", [*files, foreign, "notes/letter.pdf"], texts)
    data_set = find_data_set(root)
    assert [path.relative_to(root).as_posix() for path in data_set.leftover] == [foreign]
    assert summarise(root, data_set) == expected
    assert any(foreign in warning for warning in data_set.warnings)


def test_two_layouts_in_one_folder_ask(tmp_path):
    files = [*TREES["odelia"][0], *TREES["p0-pn"][0]]
    with pytest.raises(FormatError, match="odelia, p0-pn fit") as caught:
        find_data_set(make_tree(tmp_path / "set", files))
    assert [remedy.values for remedy in caught.value.remedies] == [("odelia",), ("p0-pn",)]
    assert find_data_set(tmp_path / "set", "odelia").layout == "odelia"


def test_own_file_beside_the_folder_describes_it(tmp_path):
    root = make_tree(tmp_path / "mine", ["a/x_t0.nrrd", "a/x_t1.nrrd", "b/x_t0.nrrd"])
    assert recognise(root) is None
    own_layout_file(root).write_text(
        '[mine]\nimage = [{path = "{patient}/x_t{phase:n}"}]\nmask = []\n'
    )
    data_set = find_data_set(root)
    assert [(case.patient, len(case.phases)) for case in data_set.cases] == [("a", 2), ("b", 1)]
    own_layout_file(root).write_text('layout = "odelia"\n')
    with pytest.raises(FormatError, match="but found none: correct the layout"):
        find_data_set(root)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a]\n", "expected image = "),
        ('[a]\nimage = [{path = "x"}]', "expected {phase:n}"),
        ('[a]\nimage = [{path = "/x_{phase:n}"}]', "below the data set's root"),
        ('[a]\nimage = [{path = "../x_{phase:n}"}]', "below the data set's root"),
        ('[a]\nimage = [{path = "{phase:q}"}]', "after the colon"),
        ('[a]\nimage = [{path = "x_{phase:n}", colour = 1}]', "found colour"),
        ('[a]\nimages = [{path = "x_{phase:n}"}]', "found images"),
        ('[a]\nimage = [{path = "x", phase = "0"}]', "a whole number"),
        ('[A b]\nimage = [{path = "x", phase = 0}]', "TOML"),
        ('["A b"]\nimage = [{path = "x", phase = 0}]', "lower-case letters"),
        ("x = 1", "one table"),
        ('[a]\nimage = [{path = "x_{phase:n}"}]\nmask = [{path = "m"}]', "name = "),
    ],
)
def test_wrong_layout_files_say_what_is_wrong(text, reason):
    with pytest.raises(FormatError, match=reason):
        parse_layouts(text, "mine.toml")


def test_visits_are_ordered_as_dates_not_as_text(tmp_path):
    files, texts, _ = TREES["longitudinal-mama-mia"]
    data_set = find_data_set(make_tree(tmp_path / "set", files, texts))
    visits = [(case.visit.name, case.visit.index) for case in data_set.cases]
    assert visits == [("12-20-2002", 0), ("01-15-2003", 1)]


@pytest.mark.parametrize(
    ("names", "orders"),
    [
        (["baseline", "followup"], [0, 1]),
        (["V2", "V10"], [0, 1]),
        (["alpha", "beta"], [None, None]),
    ],
)
def test_visits_without_a_table_are_ordered_where_their_names_say_how(tmp_path, names, orders):
    files = [f"{visit}/P1/{visit}_{k}.nrrd" for visit in names for k in range(2)]
    own = '[mine]\nimage = [{path = "{visit}/{patient}/{visit}_{phase:n}"}]\n'
    root = make_tree(tmp_path / "set", files)
    own_layout_file(root).write_text(own)
    visits = {case.visit.name: case.visit.index for case in find_data_set(root).cases}
    assert visits == dict(zip(names, orders, strict=True))


def test_times_in_names_order_the_phases(tmp_path):
    names = ("34_t1_TTC=118.1s_W", "12_t1_TTC=18.4s_W", "48_t1_TTC=181.6s_W")
    root = make_tree(tmp_path / "set", [f"in/c2/{name}.nii.gz" for name in names])
    case = find_data_set(root).cases[0]
    assert [phase.time_s for phase in case.phases] == [0.0, 99.7, 163.2]


def test_sidecar_times_of_day_run_over_midnight(tmp_path):
    files, texts, _ = TREES["bids"]
    clocks = ("23:59:00.00", "00:00:30", "00:02:00.5")
    sidecars = {
        BIDS.format("T0", "T0", run).replace(NII, ".json"): json.dumps({"AcquisitionTime": clock})
        for run, clock in enumerate(clocks, 1)
    }
    data_set = find_data_set(make_tree(tmp_path / "set", files, texts | sidecars))
    by_visit = {case.visit.name: [phase.time_s for phase in case.phases] for case in data_set.cases}
    assert by_visit == {"T0": [0.0, 90.0, 180.5], "T1": [None, None, None]}


def test_times_of_a_4d_file_come_from_its_sidecar(tmp_path):
    root = tmp_path / "set"
    path = root / "sub-07/ses-baseline/perf/sub-07_ses-baseline_dce.nii.gz"
    path.parent.mkdir(parents=True)
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2, 3), np.int16), np.diag([1, 1, 2, 1])), path)
    sidecar = path.with_name("sub-07_ses-baseline_dce.json")
    sidecar.write_text('{"VolumeTiming": [2, 95.0, 155.0]}')
    case = find_data_set(root).cases[0]
    assert [(phase.volume, phase.time_s) for phase in case.phases] == [(0, 0), (1, 93), (2, 153)]
    sidecar.write_text('{"VolumeTiming": [0, 95.0]}')
    case = find_data_set(root).cases[0]
    assert [phase.time_s for phase in case.phases] == [None] * 3
    assert "expected 3 numbers" in case.warnings[0]


def test_mask_that_fits_two_visits_is_not_guessed(tmp_path):
    own = (
        '[mine]\nimage = [{path = "{patient}/{visit}/{phase:n}"}]\n'
        'mask = [{path = "masks/{patient}", name = "m", reference = true}]\n'
    )
    files = [f"P1/v{v}/{k}.nrrd" for v in (1, 2) for k in (0, 1)]
    root = make_tree(tmp_path / "set", [*files, "masks/P1.nrrd"])
    own_layout_file(root).write_text(own)
    data_set = find_data_set(root)
    assert [case.reference for case in data_set.cases] == [None, None]
    assert any("masks/P1.nrrd" in warning for warning in data_set.warnings)


def test_two_exams_of_one_id_are_both_refused(tmp_path):
    files = [f"nnUNet_raw/Dataset{n}_B/imagesTr/c_000{k}.nrrd" for n in (1, 2) for k in (0, 1)]
    data_set = find_data_set(make_tree(tmp_path / "set", files))
    problems = [problem for case in data_set.cases for problem in case.problems]
    assert problems
    assert all("2 times" in text or "share" in text for text in problems)


@pytest.mark.skipif(os.name == "nt", reason="such names cannot be made there")
def test_hostile_names_open_nothing_else(tmp_path):
    files, texts, _ = TREES["p0-pn"]
    root = make_tree(tmp_path / "set", files, texts)
    outside = make_tree(tmp_path / "outside", ["secret.nii.gz"])
    (root / "data" / "loop").symlink_to(root)
    (root / "data" / "GD" / "GD_1" / "P6.nii.gz").symlink_to(outside / "gone.nii.gz")
    make_tree(root, ["data/GD/G\nD/P0.nii.gz", "data/GD/{patient}/P0.nii.gz"])
    Path(os.fsdecode(os.fsencode(root / "data") + b"/\xff_P0.nii.gz")).touch()
    data_set = find_data_set(root)
    keys = {case.patient for case in data_set.cases}
    assert keys == {"GD_1", "G\nD", "{patient}"}
    assert any("not UTF-8" in warning for warning in data_set.warnings)


@pytest.mark.parametrize(
    ("names", "orders"),
    [
        (["pre.nii.gz", "post1.nii.gz", "post2.nii.gz"], [0, 1, 2]),
        (["dce_0.nrrd", "dce_10.nrrd", "dce_2.nrrd"], [0, 10, 2]),
        (["T1.nii.gz", "T2.nii.gz"], None),
        (["pre.nii.gz", "pre_2.nii.gz", "x.nii.gz"], None),
        (["a.nii.gz"], None),
    ],
)
def test_phases_of_a_list_are_taken_from_names_that_say_them(names, orders):
    assert order_phases(names) == orders


@pytest.mark.parametrize(
    ("pattern", "path", "fields"),
    [
        ("{patient}/P{phase:n}", "a/P10.nii.gz", {"patient": "a", "phase": "10"}),
        ("{patient}/P{phase:n}", "a/Px.nii.gz", None),
        ("{a}/{a}_{phase:n}", "X/x_1.nrrd", {"a": "X", "phase": "1"}),
        ("{a}/{a}_{phase:n}", "X/y_1.nrrd", None),
        ("**/v.nii.gz", "v.nii", {}),
        ("**/v.nii.gz", "a/b/v.nii.gz", {}),
        ("**/v.nii.gz", "a/bv.nii.gz", None),
        ("{d:%m-%d-%Y}/x", "13-01-2000/x.nrrd", None),
        ("{s:left|right}/x", "LEFT/x.nrrd", {"s": "LEFT"}),
        ("{t:x}s/x", "1.5s/x.nrrd", {"t": "1.5"}),
        ("{p:ab*}_{v:n}/x", "ab_c_1/x.nrrd", {"p": "ab_c", "v": "1"}),
        ("x", "x.seg.nrrd", {}),
        ("x", "x.txt", None),
    ],
)
def test_pattern_takes_paths_apart(pattern, path, fields):
    assert PathPattern(pattern).match(path) == fields


def test_words_of_a_pattern_are_in_the_order_in_which_they_are_listed(tmp_path):
    pattern = PathPattern("{patient}/{visit:post|mid|Late}/{phase:n}")
    words = sorted(("late", "Mid", "POST"), key=lambda word: pattern.sort_key("visit", word))
    assert words == ["POST", "Mid", "late"]
    root = make_tree(tmp_path / "set", [f"P1_{phase}.nrrd" for phase in ("plain", "after")])
    own_layout_file(root).write_text('[mine]\nimage = [{path = "{patient}_{phase:plain|after}"}]\n')
    (case,) = find_data_set(root).cases
    assert [phase.files[0].name for phase in case.phases] == ["P1_plain.nrrd", "P1_after.nrrd"]


def test_known_layouts_have_names_of_their_own():
    names = [layout.name for layout in list_layouts()]
    assert len(names) == len(set(names)) >= 20


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            ["a/x_t0.nrrd", "a/x_t1.nrrd", "b/x_t0.nrrd", "b/x_t1.nrrd", "masks/a.nrrd"],
            {"a": ["a/x_t0.nrrd", "a/x_t1.nrrd"], "b": ["b/x_t0.nrrd", "b/x_t1.nrrd"]},
        ),
        (
            [f"in/{p}_dce_{k}.nii.gz" for p in ("P1", "P22") for k in (1, 2, 3)],
            {p: [f"in/{p}_dce_{k}.nii.gz" for k in (1, 2, 3)] for p in ("P1", "P22")},
        ),
        (
            [f"{p}/{d}/dce_{k}.mha" for p in ("A", "B") for d in ("2001-02-03",) for k in (0, 1)],
            {p: [f"{p}/2001-02-03/dce_{k}.mha" for k in (0, 1)] for p in ("A", "B")},
        ),
        (
            [f"{p}/{name}.nii.gz" for p in ("A", "B") for name in ("pre", "post1", "post2", "T1")],
            {p: [f"{p}/{name}.nii.gz" for name in ("pre", "post1", "post2")] for p in ("A", "B")},
        ),
    ],
)
def test_proposal_for_an_unknown_folder_opens_it(tmp_path, files, expected):
    root = make_tree(tmp_path / "mine", files)
    text = propose_layout(list_tree(root))
    own_layout_file(root).write_text(text)
    data_set = find_data_set(root)
    found = {
        case.patient: phases
        for case, phases in zip(
            data_set.cases,
            (
                [phase.files[0].relative_to(root).as_posix() for phase in case.phases]
                for case in data_set.cases
            ),
            strict=True,
        )
    }
    assert found == expected


def test_nothing_is_proposed_for_a_folder_without_volumes(tmp_path):
    root = make_tree(tmp_path / "mine", ["letter.pdf", "a/1-01.dcm"])
    with pytest.raises(FormatError, match="import DICOM"):
        propose_layout(list_tree(root))


def test_series_that_a_download_lists_and_lacks_are_reported(tmp_path):
    header = "Series UID,Subject ID,Modality,File Size,File Location,Download Timestamp"
    rows = [r"1.2,X,MR,1,.\C\P1\01-02-2003-S\1.0-dce,", r"1.3,MR,1,.\C\P1\01-02-2003-S\2.0-late,"]
    files = ["manifest-1/C/P1/01-02-2003-S/1.0-dce/1-01.dcm"]
    texts = {"manifest-1/metadata.csv": "\n".join([header, *rows])}
    warnings = list_missing_series(list_tree(make_tree(tmp_path / "set", files, texts)))
    assert warnings == [
        "1 series in the list manifest-1/metadata.csv are missing: C/P1/01-02-2003-S/2.0-late"
    ]


def test_uids_of_a_tcia_manifest_are_looked_for_in_names_of_folders(tmp_path):
    uids = ["1.2.826.0.1.3680043.8.1", "1.2.826.0.1.3680043.8.2"]
    texts = {"c.tcia": "ListOfSeriesToDownload=\n" + "\n".join(uids)}
    with_uid = make_tree(tmp_path / "a", [f"C/P/S/{uids[0]}/1.dcm"], texts)
    assert uids[1] in list_missing_series(list_tree(with_uid))[0]
    without = make_tree(tmp_path / "b", ["C/P/S/3.0-dce/1.dcm"], texts)
    assert list_missing_series(list_tree(without)) == []


def test_a_split_that_parts_a_person_is_reported(tmp_path):
    files = [f"data/GD/GD_{n}/P{k}.nii.gz" for n in (1, 2) for k in range(2)]
    texts = {"data/train.txt": "GD_1\n", "data/test.txt": "GD_2\nGD_1\n"}
    data_set = find_data_set(make_tree(tmp_path / "set", files, texts))
    assert any("GD_1 is in the splits" in warning for warning in data_set.warnings)
    own = (
        '[mine]\nimage = [{path = "{patient}/{visit:n}/{phase:n}"}]\n'
        'split = [{path = "train.txt", name = "train"}, {path = "test.txt", name = "test"}]\n'
        'table = {path = "t.csv", key = "id", person = "who"}\n'
    )
    files = [f"{p}/1/{k}.nrrd" for p in ("A", "B") for k in (0, 1)]
    texts = {"train.txt": "A\n", "test.txt": "B\n", "t.csv": "id,who\nA,7\nB,7\n"}
    root = make_tree(tmp_path / "persons", files, texts)
    own_layout_file(root).write_text(own)
    data_set = find_data_set(root)
    assert [case.split for case in data_set.cases] == ["train", "test"]
    assert {case.person_key for case in data_set.cases} == {"person 7"}
    assert any("several parts of the split" in warning for warning in data_set.warnings)


def test_names_of_cases_never_lead_out_of_a_folder(tmp_path):
    files, texts, _ = TREES["grand-challenge"]
    texts = {path: text.replace("CASE_17", "../../evil") for path, text in texts.items()}
    case = find_data_set(make_tree(tmp_path / "set", files, texts)).cases[0]
    assert case.case_id == "_.._evil"


def test_items_of_a_list_are_never_joined(tmp_path):
    names = [f"imgs/case_{n}.nii.gz" for n in range(3)]
    listed = {"training": [{"image": name} for name in names]}
    root = make_tree(tmp_path / "set", names, {"dataset.json": json.dumps(listed)})
    data_set = find_data_set(root, "monai")
    assert [(case.case_id, len(case.phases)) for case in data_set.cases] == [
        (f"case_{n}", 1) for n in range(3)
    ]


@pytest.mark.parametrize("way", ["..", "inner/../..", "absolute", "backslash"])
@pytest.mark.parametrize("key", ["image", "label"])
def test_a_list_never_names_files_outside_its_data_set(tmp_path, key, way):
    make_tree(tmp_path / "outside", ["secret.nii.gz"])
    path = {
        "absolute": str(tmp_path / "outside/secret.nii.gz"),
        "backslash": "..\\outside\\secret.nii.gz",
    }.get(way, f"{way}/outside/secret.nii.gz")
    inside = ["imgs/case_0.nii.gz", "imgs/case_1.nii.gz", "inner/case_2.nii.gz"]
    listed = [{"image": inside[0]}, {"image": inside[1], key: path}]
    texts = {"dataset.json": json.dumps({"training": listed})}
    data_set = find_data_set(make_tree(tmp_path / "set", inside, texts), "monai")
    files = [file for case in data_set.cases for phase in case.phases for file in phase.files]
    files += [mask.path for case in data_set.cases for mask in case.masks]
    assert data_set.cases[0].phases[0].files[0].name == "case_0.nii.gz"
    assert not [file for file in files if "secret" in file.name]


def test_a_listed_file_that_is_not_there_is_a_problem(tmp_path):
    files, texts, _ = TREES["monai"]
    kept = [file for file in files if "post2" not in file]
    case = find_data_set(make_tree(tmp_path / "set", kept, texts), "monai").cases[0]
    assert "post2.nii.gz" in case.problems[0]


@pytest.mark.parametrize("root", ["", "nnUNet_raw/Dataset932_Breast"])
def test_channels_are_ordered_by_their_names(tmp_path, root):
    files = [f"{NNUNET}imagesTr/c_{k:04d}.nii.gz" for k in range(3)]
    names = {"channel_names": {"0": "post1", "1": "pre", "2": "sub1"}}
    texts = {f"{NNUNET}dataset.json": json.dumps(names)}
    folder = make_tree(tmp_path / "set", files, texts) / root
    (case,) = find_data_set(folder).cases
    assert [phase.files[0].name for phase in case.phases] == ["c_0001.nii.gz", "c_0000.nii.gz"]


def test_rows_that_contradict_each_other_are_not_used(tmp_path):
    files, _, _ = TREES["odelia"]
    rows = "UID,PatientID,Lesion\nUKA_1_left,UKA_1,2\nUKA_1_left,UKA_1,0\nUKA_1_right,UKA_1,1\n"
    texts = {"UKA/metadata_unilateral/annotation.csv": rows}
    data_set = find_data_set(make_tree(tmp_path / "set", files, texts))
    lesions = {case.side: case.columns.get("Lesion") for case in data_set.cases}
    assert lesions == {"left": None, "right": "1"}
    assert any("contradict" in warning for warning in data_set.warnings)


@pytest.mark.parametrize(
    ("names", "fits"),
    [
        ({"0": "T2", "1": "ADC"}, False),
        ({"0": "FLAIR", "1": "T1w", "2": "t1gd", "3": "T2w"}, False),
        ({"0": "MRI"}, True),
        ({"0": "pre", "1": "post1"}, True),
    ],
)
def test_volumes_of_a_listed_file_that_are_other_images_are_no_phases(tmp_path, names, fits):
    """The Medical Segmentation Decathlon names the volumes of its 4-D files."""
    root = tmp_path / "set"
    path = root / "imagesTr/prostate_00.nii.gz"
    path.parent.mkdir(parents=True)
    nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2, 2), np.int16), np.eye(4)), path)
    content = {"modality": names, "training": [{"image": "./imagesTr/prostate_00.nii.gz"}]}
    (root / "dataset.json").write_text(json.dumps(content))
    data_set = find_data_set(root, "monai") if fits else None
    if data_set is not None:
        assert [len(case.phases) for case in data_set.cases] == [2]
    else:
        with pytest.raises(FormatError):
            find_data_set(root)


def test_milliseconds_in_names_are_times_and_are_no_seconds(tmp_path):
    names = [f"{patient}/dyn_t{ms}.nrrd" for patient in "ab" for ms in (0, 61000, 122000)]
    root = make_tree(tmp_path / "set", names)
    own_layout_file(root).write_text('[mine]\nimage = [{path = "{patient}/dyn_t{time:ms}"}]\n')
    assert [[p.time_s for p in case.phases] for case in find_data_set(root).cases] == [
        [0, 61, 122]
    ] * 2
    own_layout_file(root).write_text('[mine]\nimage = [{path = "{patient}/dyn_t{time:x}"}]\n')
    for case in find_data_set(root).cases:
        assert [phase.time_s for phase in case.phases] == [None] * 3
        assert "122000 s" in case.warnings[0]


def test_a_table_is_joined_by_several_columns_and_words(tmp_path):
    files = [f"P1_{side}/{name}.nrrd" for side in "LR" for name in ("pre", "post1")]
    table = "pat;breast;grade\nP1;L;2\nP1;R;3\n"
    root = make_tree(tmp_path / "set", files, {"clin.csv": table})
    own_layout_file(root).write_text(
        '[mine]\nimage = [{path = "{patient}_{side:L|R}/pre", phase = 0}, '
        '{path = "{patient}_{side:L|R}/post{phase:n}"}]\n'
        'table = {path = "clin.csv", key = "{pat}_{breast}", id = "{patient}_{side}"}\n'
        'words = {L = "left", R = "right"}\n'
    )
    data_set = find_data_set(root)
    assert {case.side: case.columns["grade"] for case in data_set.cases} == {
        "left": "2",
        "right": "3",
    }
    assert not data_set.warnings
    own = own_layout_file(root).read_text()
    own_layout_file(root).write_text(own.replace("{breast}", "{side}"))
    assert "side" in find_data_set(root).warnings[0]
