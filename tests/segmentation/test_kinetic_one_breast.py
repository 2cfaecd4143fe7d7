"""The kinetic segmenter on phantoms of sagittal exams of one breast, hostile on purpose.

What would fool it: zeros for air, signal that fades, heart and lymph nodes that enhance more than
the tumour, nipple and skin, a cropped view, thick slices, three phases. No evidence for patients.
"""

import numpy as np
import pytest

from napari_mamamia.metrics.overlap import dice
from napari_mamamia.phantom import Tissue, make_phantom
from napari_mamamia.phantom.data_set import plan_one_breast
from napari_mamamia.segmentation.kinetic.breast import breast_mask
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter

# mass beside the heart (right, left), small and weak, cropped, fading with other axes
QUICK = (0, 1, 4, 5, 6)


def tried(index, seed=0):
    phantom = make_phantom(plan_one_breast(index, seed).spec)
    return phantom, KineticSegmenter().predict(phantom.case)


@pytest.fixture(scope="module")
def quick():
    return [tried(index) for index in QUICK]


def assert_found(phantom, found):
    score = dice(found.mask.array, phantom.reference.array)
    assert score > 0.8, (phantom.case.case_id, score, found.notes)


def test_the_first_candidate_is_the_tumour_not_heart_node_or_nipple(quick):
    for phantom, found in quick:
        assert_found(phantom, found)


def test_every_breast_is_told_from_its_chest(quick):
    for phantom, found in quick:
        assert not any("was searched" in note or "nothing was cut" in note for note in found.notes)
        heart = np.isin(phantom.tissue, [Tissue.HEART_BLOOD, Tissue.MYOCARDIUM])
        breast = breast_mask(phantom.case.signal[:2].mean(axis=0), phantom.case.grid)
        assert (breast.array & heart).sum() < 0.1 * heart.sum()
        assert breast.array[phantom.lesions > 0].mean() > 0.9


def test_nodes_among_the_candidates_are_called_what_they_may_be(quick):
    words = []
    for phantom, found in quick:
        for candidate in found.candidates:
            inside = phantom.tissue[candidate.box.slices][candidate.crop]
            if (inside == Tissue.NODE).mean() > 0.5:
                words.append(" | ".join(candidate.reasons))
    assert words
    assert all("armpit" in said or "chest wall" in said for said in words), words


def test_a_small_tumour_beside_a_node_that_scores_alike_is_said_to_be_unsure(quick):
    ((_, found),) = [(p, f) for p, f in quick if p.case.case_id == "ONE_BREAST_005"]
    assert "candidates 1 to 2 have similar scores" in found.unsure


@pytest.mark.night
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_in_most_of_24_exams_the_tumour_comes_first_and_else_the_note_says_unsure(seed):
    right = 0
    for index in range(8):
        phantom, found = tried(index, seed)
        if dice(found.mask.array, phantom.reference.array) > 0.7:
            right += 1
        else:
            assert found.unsure, phantom.case.case_id
    assert right >= 7
