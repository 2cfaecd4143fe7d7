"""Every damage of a tree of any layout is reported, or the cases are those of the whole tree."""

import os
import re
from itertools import combinations
from pathlib import Path

import nibabel
import numpy as np
import pytest
from tests.io.test_layouts import TREES, make_tree, named, summarise

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.layouts.known import list_layouts

SPY1 = "BreastDCEDL_spy1/spt1_dce/{}_spy1_vis{}_acq{}.nii.gz"
MORE_TREES = {
    "mama-mia": (
        [
            *named("images/A_1/A_1_{:04d}.nii.gz", range(3)),
            *named("images/B_2/b_2_{:04d}.nii.gz", range(3)),
            "segmentations/expert/A_1.nii.gz",
        ],
        {},
        {
            ("A_1", "", ""): (
                named("images/A_1/A_1_{:04d}.nii.gz", range(3)),
                ["segmentations/expert/A_1.nii.gz"],
            ),
            ("B_2", "", ""): (named("images/B_2/b_2_{:04d}.nii.gz", range(3)), []),
        },
    ),
    "case-folder": (
        named("scan_{:04d}.nii.gz", range(4)),
        {},
        {("scan", "", ""): (named("scan_{:04d}.nii.gz", range(4)), [])},
    ),
    "breastdcedl-spy1": (
        [SPY1.format("P_1", visit, k) for visit in (1, 2) for k in range(3)],
        {},
        {
            ("P_1", visit, ""): ([SPY1.format("P_1", visit, k) for k in range(3)], [])
            for visit in ("1", "2")
        },
    ),
    "slicer": (
        named("PAT_5/DCE_{}.nrrd", range(3)),
        {},
        {("PAT_5", "", ""): (named("PAT_5/DCE_{}.nrrd", range(3)), [])},
    ),
}
ALL_TREES = {**TREES, **MORE_TREES}
HOSTILE = (
    "..dots/x_0000.nii.gz",
    "a b/[c]{d}*.nii.gz",
    "line\nbreak.nii.gz",
    "%s%n{patient}.nii.gz",
    "-rf.nii.gz",
    "‮txet.nii.gz",
    "x" * 200 + ".nii.gz",
)


def write_tree(root, name):
    files, texts, expected = ALL_TREES[name]
    make_tree(root, files, texts)
    return files, expected


def check_reported_or_right(root, expected, changed=()):
    """The cases are the expected ones, or an error, a problem or a warning says what is not."""
    try:
        data_set = find_data_set(root)
    except MamamiaError:
        return "refused"
    wrong = {key: case for key, case in summarise_cases(root, data_set, expected).items() if case}
    for problem in wrong.values():
        assert problem == "reported", problem
    texts = [*data_set.warnings, *(text for case in data_set.cases for text in case.problems)]
    assert all(re.sub(r"\s", " ", text) for text in texts)
    used = {
        path.relative_to(root).as_posix()
        for case in data_set.cases
        for phase in case.phases
        if not case.problems
        for path in phase.files
    }
    right = {path for phases, _ in expected.values() for path in phases}
    assert used <= right | set(changed)
    return "reported" if wrong or texts else "right"


def fold(key):
    return tuple(text.casefold() for text in key)


def summarise_cases(root, data_set, expected):
    """For each expected exam: None if it is right, "reported" if its case has a problem."""
    there = {fold(key): phases for key, (phases, _) in summarise(root, data_set).items()}
    by_key = {
        fold((case.patient, case.visit.name if case.visit else "", case.side)): case
        for case in data_set.cases
    }
    texts = " ".join((*data_set.warnings, *(t for c in data_set.cases for t in c.problems)))
    states = {}
    for key, (phases, _) in expected.items():
        case = by_key.get(fold(key))
        if case is not None and there[fold(key)] == phases and not case.problems:
            states[key] = None
        elif (case is not None and case.problems) or key[0].casefold() in texts.casefold():
            states[key] = "reported"
        else:
            states[key] = f"{key}: {there.get(fold(key))} and nothing is reported"
    return states


@pytest.mark.parametrize("name", ALL_TREES)
def test_whole_tree_is_right(tmp_path, name):
    _, expected = write_tree(tmp_path / "set", name)
    data_set = find_data_set(tmp_path / "set")
    assert summarise(tmp_path / "set", data_set) == expected


@pytest.mark.parametrize("name", ALL_TREES)
def test_each_missing_phase_but_the_last_is_reported(tmp_path, name):
    _, _, expected = ALL_TREES[name]
    (phases, _), *_ = expected.values()
    for number, phase in enumerate(phases[:-1]):
        root = tmp_path / str(number) / "set"
        write_tree(root, name)
        (root / phase).unlink()
        assert check_reported_or_right(root, expected) != "right"


@pytest.mark.parametrize("name", ALL_TREES)
def test_each_empty_phase_is_reported(tmp_path, name):
    _, _, expected = ALL_TREES[name]
    (phases, _), *_ = expected.values()
    for number, phase in enumerate(phases):
        root = tmp_path / str(number) / "set"
        write_tree(root, name)
        (root / phase).write_bytes(b"")
        assert any(case.problems for case in find_data_set(root).cases)


@pytest.mark.parametrize("suffix", [".nii", ".nrrd", ".nii.gz"])
@pytest.mark.parametrize("name", [name for name in ALL_TREES if name != "monai"])
def test_each_doubled_phase_is_reported(tmp_path, name, suffix):
    _, _, expected = ALL_TREES[name]
    (phases, _), *_ = expected.values()
    for number, phase in enumerate(phases):
        twin = re.sub(r"\.(nii\.gz|nrrd|mha)$", suffix, phase)
        root = tmp_path / str(number) / "set"
        write_tree(root, name)
        if twin != phase:
            (root / twin).write_bytes(b"content")
            assert check_reported_or_right(root, expected, [twin]) != "right"


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase])
@pytest.mark.parametrize("name", ALL_TREES)
def test_one_phase_in_another_letter_case_is_right_or_reported(tmp_path, name, change):
    _, expected = write_tree(tmp_path / "set", name)
    (phases, _), *_ = expected.values()
    path = Path(phases[-1])
    renamed = path.with_name(change(path.name))
    (tmp_path / "set" / path).rename(tmp_path / "set" / renamed)
    right = {
        key: ([renamed.as_posix() if phase == phases[-1] else phase for phase in files], masks)
        for key, (files, masks) in expected.items()
    }
    check_reported_or_right(tmp_path / "set", right, [renamed.as_posix()])


@pytest.mark.parametrize(("name", "other"), list(combinations(ALL_TREES, 2)))
def test_two_layouts_in_one_folder_are_asked_for_or_reported(tmp_path, name, other):
    root = tmp_path / "set"
    for each in (name, other):
        write_tree(root, each)
    both = {**ALL_TREES[name][2], **ALL_TREES[other][2]}
    right = {path for phases, _ in both.values() for path in phases}
    refusal = None
    try:
        data_set = find_data_set(root)
    except MamamiaError as error:
        refusal = error
    if refusal is not None:
        assert refusal.remedies
        return
    used = {
        path.relative_to(root).as_posix()
        for case in data_set.cases
        for phase in case.phases
        if not case.problems
        for path in phase.files
    }
    assert used <= right
    unused = [path for path in right - used if (root / path) not in dict(data_set.others)]
    assert not unused or data_set.warnings or any(case.problems for case in data_set.cases)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", ALL_TREES)
def test_hostile_names_change_no_case(tmp_path, name, hostile):
    _, expected = write_tree(tmp_path / "set", name)
    try:
        make_tree(tmp_path / "set", [hostile])
    except OSError:
        pytest.skip("this file system refuses the name")
    assert check_reported_or_right(tmp_path / "set", expected) in ("right", "reported")
    assert summarise(tmp_path / "set", find_data_set(tmp_path / "set")).items() >= expected.items()


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
@pytest.mark.parametrize("name", ALL_TREES)
def test_links_in_a_circle_end(tmp_path, name):
    _, expected = write_tree(tmp_path / "set", name)
    (tmp_path / "set" / "again").symlink_to(tmp_path / "set", target_is_directory=True)
    assert summarise(tmp_path / "set", find_data_set(tmp_path / "set")) == expected


@pytest.mark.parametrize("missing", [None, "sub-01/ses-2/perf/sub-01_ses-2_dce.nii.gz"])
def test_4d_sessions_of_bids(tmp_path, missing):
    files = [f"sub-01/ses-{visit}/perf/sub-01_ses-{visit}_dce.nii.gz" for visit in (1, 2)]
    for file in files:
        path = tmp_path / "set" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        nibabel.save(nibabel.Nifti1Image(np.zeros((2, 2, 2, 3), np.int16), np.eye(4)), path)
    if missing:
        (tmp_path / "set" / missing).write_bytes(b"")
    cases = find_data_set(tmp_path / "set").cases
    assert [bool(case.problems) for case in cases] == [False, missing is not None]


def test_trees_of_volumes_cover_the_layouts():
    of_other_kinds = {"ambl", "tcia-ispy2", "tcia", "tcia-classic", "idc", "breastdm"}
    of_other_kinds |= {"fastmri-breast", "bids-4d"}
    assert {layout.name for layout in list_layouts()} - of_other_kinds == ALL_TREES.keys()
