import nibabel
import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Mask, Phase
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Progress
from napari_mamamia.io.data_set.volumes import write_mask
from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE, PAPER
from napari_mamamia.services.batch.work import CaseInputs
from napari_mamamia.services.case.show_case import Counting, score_shown
from napari_mamamia.services.score.pace import Pace
from napari_mamamia.services.score.review import Agrees, compare_masks, review_masks
from napari_mamamia.services.score.score import CaseSettings, score_and_inspect

GRID = Grid((4, 8, 9), np.diag([1.0, 2.0, 3.0, 1.0]))


def mask(*boxes, value=1):
    made = np.zeros(GRID.shape, np.uint8)
    for box in boxes:
        made[box] = value
    return made


def compare(reference, shown, grid=GRID):
    return compare_masks(reference, shown, grid)


def test_the_map_says_correct_false_and_missed():
    reference = mask(np.s_[1, 2, 2:5])
    found = compare(reference, mask(np.s_[1, 2, 3:7]))
    # reference 2..4, prediction 3..6: 2 is missed, 3 and 4 are correct, 5 and 6 are false
    assert found.array[1, 2].tolist() == [0, 0, 3, 1, 1, 2, 2, 0, 0]
    assert np.count_nonzero(found.array) == 5
    assert found.array.dtype == np.uint8


def test_errors_come_largest_first_with_kind_volume_and_a_voxel_of_their_own():
    found = compare(
        mask(np.s_[0, 0, 0:2], np.s_[1:3, 4:7, 4:7]), mask(np.s_[3, 7, 8], np.s_[1, 4:7, 4:7])
    )
    # a voxel has 1 x 2 x 3 = 6 mm3; missed: 9 and 2 voxels; false: 1 voxel
    assert [(e.kind, e.volume_mm3) for e in found.errors] == [
        (Agrees.MISSED, 54.0),
        (Agrees.MISSED, 12.0),
        (Agrees.FALSE, 6.0),
    ]
    assert found.errors[0].voxel == (2, 5, 5)
    assert found.errors[2].voxel == (3, 7, 8)
    assert found.n_errors == 3


def test_voxels_that_touch_at_a_corner_are_one_error():
    found = compare(mask(np.s_[0, 0, 0], np.s_[1, 1, 1], np.s_[3, 3, 3]), mask())
    assert [e.volume_mm3 for e in found.errors] == [12.0, 6.0]


def test_every_value_above_zero_is_tumour():
    found = compare(mask(np.s_[1, 1, 1], value=2), mask(np.s_[1, 1, 1], value=255))
    assert found.errors == ()
    assert found.array[1, 1, 1] == Agrees.CORRECT


# ------------------------------------------- what counts as tumour: values 1, 2 and 3

SEVERAL = mask(np.s_[1, 2, 2])
SEVERAL[1, 2, 3], SEVERAL[1, 2, 4] = 2, 3
"""Three voxels in a row: 1, 2, 3."""


def labels(values):
    box = Box.around(values)
    return LabelMap(GRID, box, values[box.slices])


@pytest.mark.parametrize("form", [labels, np.array])
@pytest.mark.parametrize(
    ("profile", "row"),
    [
        (CLINICAL, [1, 1, 1, 2]),  # every value above 0: three correct, one false
        (PAPER, [1, 2, 2, 2]),  # 1 alone: of four predicted voxels one is correct
        (OFFICIAL_CODE, [1, 2, 2, 2]),  # the Dice of the scripts counts 1 alone as well
    ],
)
def test_the_map_counts_the_values_that_the_profile_counts(profile, row, form):
    shown = mask(np.s_[1, 2, 2:6])
    found = compare_masks(form(SEVERAL), form(shown), GRID, Counting(profile))
    assert found.array[1, 2, 2:6].tolist() == row
    assert np.count_nonzero(found.array) == 4


def test_a_chosen_label_counts_in_both_masks_and_one_of_the_reference_alone_in_it():
    both = compare_masks(SEVERAL, SEVERAL, GRID, Counting(label=2))
    assert both.array[1, 2, 2:5].tolist() == [0, 1, 0]
    alone = compare_masks(SEVERAL, SEVERAL, GRID, Counting(reference_label=2))
    assert alone.array[1, 2, 2:5].tolist() == [2, 1, 2]


@pytest.mark.parametrize("profile", [CLINICAL, PAPER, OFFICIAL_CODE])
def test_the_screen_has_the_numbers_that_scoring_the_files_gives(tmp_path, case, profile):
    paths = []
    for name, values in (("r", SEVERAL), ("p", mask(np.s_[1, 2, 2:6], np.s_[3, 5, 5]))):
        paths.append(tmp_path / f"{name}.nii.gz")
        image = nibabel.Nifti1Image(values.transpose(2, 1, 0), GRID.affine)
        nibabel.save(image, paths[-1])
    wanted = score_and_inspect(CaseInputs("A_1", tuple(paths)), CaseSettings(profile)).score
    counting = Counting(profile)
    found = review_masks(case, *paths, "net", counting)
    reference, prediction = (one.labels for one in found.masks)
    shown = score_shown(case, reference, {"prediction": prediction}, counting)
    assert repr(shown.scores["prediction"]) == repr(wanted)
    assert shown.profile == profile.name
    # one voxel of six, and of three in the reference: Dice 2 * 1 / (5 + 1) or 2 * 3 / (5 + 3)
    assert wanted.dsc == pytest.approx(0.75 if profile is CLINICAL else 1 / 3)


@pytest.mark.parametrize(("profile", "n"), [(CLINICAL, 3), (PAPER, 1), (OFFICIAL_CODE, 1)])
def test_the_outlines_are_those_of_what_counts(tmp_path, case, profile, n):
    path = tmp_path / "r.nii.gz"
    nibabel.save(nibabel.Nifti1Image(SEVERAL.transpose(2, 1, 0), GRID.affine), path)
    found = review_masks(case, path, path, "net", Counting(profile))
    assert [int(one.buffer.sum()) for one in found.masks] == [n, n]
    assert found.masks[0].values == (1.0, 2.0, 3.0)


def test_two_empty_masks_have_no_error():
    found = compare(mask(), mask())
    assert (found.n_errors, int(found.array.sum())) == (0, 0)


def test_of_very_many_errors_the_largest_200_are_listed_and_all_are_counted():
    shape = (31, 31, 3)
    reference = np.zeros(shape, np.uint8)
    reference[::2, ::2, 0] = 1
    found = compare(reference, np.zeros(shape, np.uint8), Grid(shape, np.eye(4)))
    assert (len(found.errors), found.n_errors) == (200, 256)


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(GridMismatchError, match=r"it has \(1, 1, 1\)"):
        compare(mask(), np.zeros((1, 1, 1), np.uint8))


@pytest.fixture
def case():
    return Case("A_1", GRID, np.zeros((1, *GRID.shape), np.int16), (Phase(0),))


def test_the_two_files_that_were_scored_are_read(tmp_path, case):
    reference, prediction = tmp_path / "r.nii.gz", tmp_path / "p.nii.gz"
    write_mask(Mask(GRID, mask(np.s_[1, 2, 3]) > 0), reference)
    write_mask(Mask(GRID, mask(np.s_[2, 2, 3:5]) > 0), prediction)
    found = review_masks(case, reference, prediction, "net")
    assert [(m.role, m.name, int(m.buffer.sum())) for m in found.masks] == [
        ("reference", "scored", 1),
        ("prediction", "net", 2),
    ]
    assert found.problems == ()


def test_a_missing_or_damaged_file_is_a_problem_and_not_a_failure(tmp_path, case):
    broken = tmp_path / "p.nii.gz"
    broken.write_bytes(b"not a mask")
    found = review_masks(case, None, broken, "net")
    assert found.masks == ()
    assert found.problems[0] == "A_1 had no reference to score"
    assert "the scored prediction cannot be shown" in found.problems[1]


def test_the_pace_counts_cases_whatever_the_steps_of_one():
    pace = Pace(4)
    assert pace.line(Progress(0, 1, "Reading"), 0.0) == "Reading"
    assert pace.line(Progress(0, 4000), 100.0) == "0 of 4 cases"
    # 1.5 cases in 3 s: 0.5 a second, 2.5 cases are left
    assert pace.line(Progress(1500, 4000), 103.0) == "1 of 4 cases · 0.50 cases/s · 0:05 left"
    assert pace.line(Progress(4000, 4000), 108.0) == "4 of 4 cases"
    assert pace.line(Progress(1, 4, "Permuting"), 109.0) == "4 of 4 cases · Permuting"
