"""The kinetic segmenter on one real sagittal slice with a rim-enhancing tumour."""

import json
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Click

pytestmark = pytest.mark.real

# ../shared/data/README.md: P 85-115, rows 95-125 from the top. The file's y runs to superior, so
# row r from the top of 192 is y = 191 - r. Array order is (z, y, x) = (slice, S, P).
TUMOUR = Box((0, 191 - 125, 85), (1, 191 - 95 + 1, 115 + 1))


def read_case(folder):
    """Return the slice as a case, read by nibabel."""
    files = sorted((folder / "images" / "REAL_001").glob("*.nii.gz"))
    images = [nib.load(file) for file in files]
    signal = np.stack([np.asarray(image.dataobj).transpose() for image in images])
    times = json.loads((folder / "times.json").read_text())["times_s"]
    phases = tuple(Phase(k, time) for k, time in enumerate(times))
    return Case("REAL_001", Grid(signal.shape[1:], images[0].affine), signal, phases)


@pytest.fixture
def real_case(real_data):
    return read_case(real_data("dce_slice"))


def assert_lies_on_the_tumour(mask, voxel_area_mm2):
    near = np.zeros(mask.shape, dtype=bool)
    near[TUMOUR.grown((0, 5, 5), mask.shape).slices] = True
    centroid = np.argwhere(mask).mean(axis=0)
    assert all(a <= c < b for a, c, b in zip(TUMOUR.start, centroid, TUMOUR.stop, strict=True))
    assert (mask & near).sum() >= 0.7 * mask.sum()
    assert 100 <= mask.sum() * voxel_area_mm2 <= 900


def test_the_real_slice_is_192_by_192_at_1_mm_towards_psr(real_case):
    assert real_case.grid.shape == (1, 192, 192)
    assert real_case.grid.orientation == "PSR"
    assert real_case.grid.spacing_mm[1:] == (1.0, 1.0)


def test_the_mask_lies_on_the_rim_enhancing_tumour(real_case):
    prediction = KineticSegmenter().predict(real_case)
    assert_lies_on_the_tumour(prediction.mask.array, 1.0)
    assert 1 <= len(prediction.candidates) <= 5
    assert prediction.candidates[0].reasons[0].endswith("% at 148 s")


def test_the_mask_lies_on_the_tumour_without_times_too(real_case):
    phases = tuple(replace(phase, time_s=None) for phase in real_case.phases)
    prediction = KineticSegmenter().predict(replace(real_case, phases=phases))
    assert_lies_on_the_tumour(prediction.mask.array, 1.0)
    assert any("times unknown" in note for note in prediction.notes)


def test_a_click_in_the_tumour_and_a_box_around_it_give_the_tumour(real_case):
    middle = tuple(int(c) for c in TUMOUR.centre)
    for prompt in (Click(middle), BoxPrompt(TUMOUR)):
        prediction = KineticSegmenter().predict(real_case, prompt)
        assert_lies_on_the_tumour(prediction.mask.array, 1.0)


def test_the_middle_of_the_tumour_that_hardly_enhances_is_filled(real_case):
    mask = KineticSegmenter().predict(real_case).mask.array
    inside = Box.around(mask)
    _, y, x = (int(c) for c in inside.centre)
    assert mask[0, y, x]
    assert mask.sum() >= 0.5 * np.prod(inside.shape)
