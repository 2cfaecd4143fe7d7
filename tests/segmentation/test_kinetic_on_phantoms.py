"""The kinetic segmenter on procedural phantoms under easy conditions.

A phantom is no evidence for patients: it was drawn by this project, with the contrast curves that
the segmenter looks for. What is tested here is that nothing broke, not how good the segmenter is.
"""

import numpy as np
import pytest

from napari_mamamia.metrics.overlap import dice
from napari_mamamia.phantom import PhantomSpec, Tissue, TumourSpec, make_phantom
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.segmenter import Click

SEEDS = range(4)
FIELDS = {
    "LAS": {"shape": (48, 100, 156), "spacing_mm": (3.0, 2.0, 2.0), "orientation": "LAS"},
    "PSR": {"shape": (60, 90, 80), "spacing_mm": (3.0, 2.0, 2.0), "orientation": "PSR"},
}


def easy(orientation, seed):
    """Return a phantom with one mass of 15 to 24 mm at CNR 8 to 10, little background."""
    tumour = TumourSpec(longest_mm=15.0 + 3.0 * seed)
    spec = PhantomSpec(
        case_id=f"EASY_{orientation}_{seed}",
        seed=seed,
        tumours=(tumour,),
        background_enhancement_percent=10.0,
        contrast_to_noise=8.0 + 0.5 * seed,
        **FIELDS[orientation],
    )
    return make_phantom(spec)


def masks_of(prediction, shape):
    """Return the candidates as whole arrays, best first."""
    masks = []
    for candidate in prediction.candidates:
        mask = np.zeros(shape, dtype=bool)
        mask[candidate.box.slices] = candidate.crop
        masks.append(mask)
    return masks


@pytest.fixture(scope="module", params=["LAS", pytest.param("PSR", marks=pytest.mark.night)])
def tried(request):
    """Return the phantoms of one orientation with their predictions, made once."""
    phantoms = [easy(request.param, seed) for seed in SEEDS]
    return [(p, KineticSegmenter().predict(p.case)) for p in phantoms]


def test_the_best_candidate_overlaps_the_truth_in_most_phantoms(tried):
    scores = [dice(found.mask.array, phantom.reference.array) for phantom, found in tried]
    assert sum(score >= 0.6 for score in scores) >= 3, scores


def test_the_truth_is_among_the_five_best_candidates_of_every_phantom(tried):
    for phantom, found in tried:
        truth = phantom.reference.array
        scores = [dice(mask, truth) for mask in masks_of(found, truth.shape)]
        assert 1 <= len(scores) <= 5
        assert max(scores) >= 0.6, (phantom.case.case_id, scores)


def test_a_click_in_the_middle_of_the_tumour_outlines_it(tried):
    for phantom, _ in tried:
        inside = np.argwhere(phantom.reference.array)
        middle = inside[np.abs(inside - inside.mean(axis=0)).sum(axis=1).argmin()]
        voxel = tuple(int(i) for i in middle)
        found = KineticSegmenter().predict(phantom.case, Click(voxel))
        assert found.mask.array[voxel]
        score = dice(found.mask.array, phantom.reference.array)
        assert score >= 0.6, (phantom.case.case_id, score)


def test_no_best_candidate_lies_in_the_heart(tried):
    for phantom, found in tried:
        heart = np.isin(phantom.tissue, [Tissue.MYOCARDIUM, Tissue.HEART_BLOOD])
        assert not (found.mask.array & heart).any(), phantom.case.case_id


def test_the_volume_of_a_candidate_is_that_of_its_voxels(tried):
    for phantom, found in tried:
        masks = masks_of(found, phantom.case.grid.shape)
        for candidate, mask in zip(found.candidates, masks, strict=True):
            expected = np.count_nonzero(mask) * 12.0  # 3 x 2 x 2 mm
            assert candidate.volume_mm3 == pytest.approx(expected)
