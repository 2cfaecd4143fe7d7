from types import SimpleNamespace

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Mask, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.data_set.volumes import write_mask
from napari_mamamia.segmentation.model.segmenter import Candidate, Prediction
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.case.show_case import (
    LesionPlace,
    centre_of_largest_part,
    choose_candidate,
    display_range,
    lesion_places,
    looks_like_mask,
    open_masks,
    score_shown,
    subtract_phases,
    uint8_mask,
)

AXIAL = Grid((6, 20, 24), np.diag([-1.0, 1.0, 3.0, 1.0]))


def test_the_range_on_screen_leaves_out_the_darkest_and_the_brightest_few():
    # 0 to 999, each once: the 1st percentile is 9.99, the 99.7th 996.003
    low, high = display_range(np.arange(1000, dtype=np.int16).reshape(10, 10, 10))
    assert low == pytest.approx(9.99)
    assert high == pytest.approx(996.003)


def test_a_volume_of_one_value_gets_a_range_all_the_same():
    assert display_range(np.full((3, 3, 3), 7, np.uint8)) == (7.0, 8.0)


def test_values_that_are_not_numbers_do_not_count_in_the_range():
    volume = np.full((4, 4, 4), np.nan, np.float32)
    assert display_range(volume) == (0.0, 1.0)
    volume[0] = [[0, 1, 2, 3]] * 4
    assert 2.9 < display_range(volume)[1] <= 3.0


def test_a_big_volume_is_sampled():
    volume = np.zeros((200, 200, 200), np.int16)
    volume[:, :100] = 1000
    assert display_range(volume) == (0.0, 1000.0)


def test_the_place_to_look_at_lies_in_the_largest_part_on_its_largest_slice():
    mask = np.zeros(AXIAL.shape, np.uint8)
    mask[0, 1:3, 1:3] = 1
    mask[2, 10:12, 10:12] = 1
    mask[3, 8:13, 8:13] = 1
    mask[4, 10:12, 10:12] = 1
    assert centre_of_largest_part(mask, AXIAL) == (3, 10, 10)


def test_the_place_lies_on_the_tumour_even_if_that_is_a_ring():
    mask = np.zeros(AXIAL.shape, np.uint8)
    mask[3, 5:12, 5:12] = 1
    mask[3, 6:11, 6:11] = 0
    assert mask[centre_of_largest_part(mask, AXIAL)] == 1


def test_the_slices_are_those_on_screen_not_those_of_the_array():
    # sagittal: the third file axis runs to the right, so slices are the array's z; here the case is
    # stored coronal-first: y of the array is the thick slice axis
    affine = np.diag([-1.0, 3.0, 1.0, 1.0])
    grid = Grid((20, 6, 24), affine)
    mask = np.zeros(grid.shape, np.uint8)
    mask[3:9, 2, 3:9] = 1
    mask[5, 1:5, 5] = 1
    assert centre_of_largest_part(mask, grid)[1] == 2


def test_an_empty_mask_has_no_place():
    assert centre_of_largest_part(np.zeros(AXIAL.shape, np.uint8), AXIAL) is None


def test_a_few_whole_numbers_are_a_mask_and_an_image_is_not():
    assert looks_like_mask(np.array([[[0, 1], [2, 255]]], np.uint8))
    assert not looks_like_mask(np.arange(64, dtype=np.int16).reshape(4, 4, 4))
    assert not looks_like_mask(np.array([[[0, -1]]], np.int16))
    assert not looks_like_mask(np.zeros((2, 2, 2), np.float32))


def _labels(values):
    buffer = np.zeros(AXIAL.shape, np.uint8)
    buffer[1, 2, 3:6] = values
    box = Box.around(buffer)
    return LabelMap(AXIAL, box, buffer[box.slices])


def test_a_mask_for_the_screen_holds_all_labels_or_the_chosen_one():
    labels = _labels([1, 2, 2])
    assert uint8_mask(labels).sum() == 3
    assert uint8_mask(labels, 2.0).sum() == 2
    assert set(np.unique(uint8_mask(labels, 2.0))) == {0, 1}


def _case():
    signal = np.zeros((2, *AXIAL.shape), np.uint16)
    signal[0] = 100
    signal[1] = 60
    signal[1, 3, 4, 5] = 500
    return Case("A_1", AXIAL, signal, (Phase(0, 0.0), Phase(1, 90.0)))


def test_a_subtraction_is_signed_and_black_where_nothing_enhances():
    difference = subtract_phases(_case(), 1)
    assert difference.array.dtype == np.float32
    assert difference.array[0, 0, 0] == -40
    assert difference.array[3, 4, 5] == 400
    assert difference.limits[0] == 0.0


def test_another_candidate_becomes_the_mask_and_the_history_says_which():
    first = np.zeros(AXIAL.shape, bool)
    first[1, 1, 1] = True
    made = Provenance("A_1", Maker.MODEL, "kinetic", parameters=(("candidate_shown", 1),))
    other = Candidate(2, Box((2, 2, 2), (3, 4, 4)), np.array([[[1, 0], [1, 1]]], bool), 9.0, 0.5)
    chosen = choose_candidate(Prediction("A_1", Mask(AXIAL, first, made), (other,)), other)
    assert np.argwhere(chosen.mask.array).tolist() == [[2, 2, 2], [2, 3, 2], [2, 3, 3]]
    assert chosen.mask.provenance.parameters == (("candidate_shown", 2),)


def test_masks_on_screen_are_scored_and_measured():
    reference = np.zeros(AXIAL.shape, np.uint8)
    reference[1, 2:4, 2:4] = 1
    shown = np.zeros(AXIAL.shape, np.uint8)
    shown[1, 2:4, 2] = 1
    scored = score_shown(_case(), reference, {"refined": shown})
    # 2 of 4 voxels of 3 mm3: Dice 2 * 2 / (4 + 2)
    assert scored.scores["refined"].dsc == pytest.approx(2 / 3)
    assert scored.volumes_mm3["refined"] == pytest.approx(6.0)
    assert scored.volume_reference_mm3 == pytest.approx(12.0)


def test_without_a_reference_only_volumes_are_measured():
    shown = np.ones(AXIAL.shape, np.uint8)
    scored = score_shown(_case(), None, {"prediction": shown})
    assert dict(scored.scores) == {}
    assert scored.volumes_mm3["prediction"] == pytest.approx(6 * 20 * 24 * 3.0)


@pytest.fixture
def opened(small_data_set, tmp_path):
    return open_data_set(small_data_set, tmp_path / "work")


def _read(opened, reader):
    files = opened.data_set.case("A_1")
    case = load_case(files)
    return open_masks(case, files, opened.workspace, reader), case


def test_the_reference_and_the_readers_own_mask_are_read(opened):
    found, case = _read(opened, "Ana")
    assert [(mask.role, mask.name) for mask in found.masks] == [("reference", "expert")]
    own = np.zeros(case.grid.shape, bool)
    own[3, 4, 5] = True
    for reader in ("Ana", "Bo"):
        path = opened.workspace.refined(reader, "A_1")
        path.parent.mkdir(parents=True)
        write_mask(Mask(case.grid, own), path)
    found, _ = _read(opened, "Ana")
    assert [(mask.role, mask.name) for mask in found.masks][1:] == [("refined", "Ana")]
    assert found.masks[1].saved.path == opened.workspace.refined("Ana", "A_1")
    assert found.masks[1].buffer.sum() == 1
    assert found.masks[1].buffer.flags.writeable


def test_a_mask_on_another_grid_is_told_and_the_others_are_read(opened):
    path = opened.workspace.refined("Ana", "A_1")
    path.parent.mkdir(parents=True)
    write_mask(Mask(AXIAL, np.ones(AXIAL.shape, bool)), path)
    found, _ = _read(opened, "Ana")
    assert [mask.role for mask in found.masks] == ["reference"]
    assert "the refined mask cannot be shown" in found.problems[0]
    assert "shape" in found.problems[0]


def test_a_prediction_that_is_gone_since_it_was_listed_is_told_and_the_others_are_read(
    opened, monkeypatch
):
    gone = opened.workspace.predictions / "kinetic" / "A_1.nii.gz"
    listed = ("kinetic", SimpleNamespace(path=gone))
    monkeypatch.setattr(type(opened.workspace), "newest_prediction", lambda *_: listed)
    found, _ = _read(opened, None)
    assert [mask.role for mask in found.masks] == ["reference"]
    assert "the prediction mask cannot be shown" in found.problems[0]
    assert "predict the case again" in found.problems[0]


def test_lesions_of_a_mask_come_first_and_then_those_that_it_misses():
    mask, reference = np.zeros((2, *AXIAL.shape), np.uint8)
    mask[1, 1:3, 1:3] = 1
    mask[3, 4:9, 4:9] = 1
    reference[3, 6:12, 6:12] = 1  # overlaps the larger lesion
    reference[2, 14:16, 2:5] = 1
    found, small, missed = lesion_places(mask, reference, AXIAL)
    assert (found, small) == (LesionPlace((3, 6, 6)), LesionPlace((1, 1, 1)))
    assert missed.voxel == (2, 14, 3)
    assert missed.missed_mm3 == pytest.approx(6 * AXIAL.voxel_volume_mm3)
    assert lesion_places(mask, None, AXIAL) == (found, small)
    assert lesion_places(np.zeros_like(mask), None, AXIAL) == ()
