"""A real tumour mask eroded by one voxel, scored against itself."""

import csv

import nrrd
import numpy as np
import pytest
from scipy.ndimage import binary_erosion, generate_binary_structure

from napari_mamamia.core.case import Mask
from napari_mamamia.core.grid import Grid
from napari_mamamia.scoring.case_score import score_masks

pytestmark = pytest.mark.real

FACES = generate_binary_structure(3, 1)
SPACING = (2.1, 0.664062, 0.664062)  # z, y, x, from the file's header


@pytest.fixture
def mask(real_data):
    values, _ = nrrd.read(str(real_data("breast1") / "breast1_label.nrrd"), index_order="C")
    grid = Grid(values.shape, np.diag([*SPACING[::-1], 1.0]))
    return Mask(grid, values == 1)


def plain_contour(array):
    return np.argwhere(array & ~binary_erosion(array, FACES))


def test_the_volume_is_that_of_pyradiomics(mask, real_data):
    with (real_data("breast1") / "baseline_shape.csv").open(encoding="utf-8") as lines:
        rows = {row["featureName"]: row["breast1"] for row in csv.DictReader(lines)}
    score = score_masks("breast1", mask, mask)
    published = float(rows["original_shape_VoxelVolume"])
    assert score.volume_reference_mm3 == pytest.approx(published, rel=1e-12)
    assert (score.dsc, score.hausdorff_mm, score.nsd_1mm) == (1, 0, 1)


def test_the_eroded_mask_scores_what_plain_counting_over_the_whole_volume_gives(mask):
    eroded = binary_erosion(mask.array, FACES)
    score = score_masks("breast1", mask, Mask(mask.grid, eroded))
    shared, whole = int(eroded.sum()), int(mask.array.sum())
    assert (whole, shared) == (143, 16)
    assert score.dsc == 2 * shared / (whole + shared)
    assert score.iou == shared / whole
    a, b = plain_contour(mask.array), plain_contour(eroded)
    for unit, name in ((SPACING, "mm"), ((1.0, 1.0, 1.0), "voxels")):
        table = np.linalg.norm((a[:, None] - b[None]) * unit, axis=2)
        there, back = table.min(axis=1), table.min(axis=0)
        expected = max(np.percentile(there, 95), np.percentile(back, 95))
        assert getattr(score, f"hausdorff95_{name}") == pytest.approx(expected, rel=1e-12)
        if name == "mm":
            both = np.concatenate([there, back])
            assert score.hausdorff_mm == pytest.approx(both.max(), rel=1e-12)
            assert score.assd_mm == pytest.approx(both.mean(), rel=1e-12)
            assert score.nsd_1mm == np.mean(both <= 1)
            assert score.nsd_2mm == np.mean(both <= 2)
