"""A real tumour mask eroded by one voxel, scored against itself."""

import csv

import nrrd
import numpy as np
import pytest
from scipy.ndimage import binary_erosion, generate_binary_structure

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.scoring.case.score import score_label_maps

pytestmark = pytest.mark.real

FACES = generate_binary_structure(3, 1)
SPACING = (2.1, 0.664062, 0.664062)  # z, y, x, from the file's header


@pytest.fixture
def path(real_data):
    return real_data("breast1") / "breast1_label.nrrd"


def plain_contour(array):
    return np.argwhere(array & ~binary_erosion(array, FACES))


def test_the_volume_is_that_of_pyradiomics(path):
    with (path.parent / "baseline_shape.csv").open(encoding="utf-8") as lines:
        rows = {row["featureName"]: row["breast1"] for row in csv.DictReader(lines)}
    labels = read_labels(path)
    score = score_label_maps("breast1", labels, labels)
    published = float(rows["original_shape_VoxelVolume"])
    assert score.volume_reference_mm3 == pytest.approx(published, rel=1e-12)
    assert (score.dsc, score.hausdorff_mm, score.nsd_1mm) == (1, 0, 1)


def test_the_eroded_mask_scores_what_plain_counting_over_the_whole_volume_gives(path):
    values, _ = nrrd.read(str(path), index_order="C")
    whole = values == 1
    eroded = binary_erosion(whole, FACES)
    labels = read_labels(path)
    box = Box.around(eroded)
    score = score_label_maps("b", labels, LabelMap(labels.grid, box, eroded[box.slices]))
    # 143 voxels in 3 slices, of which 16 have all their face neighbours
    assert (whole.sum(), eroded.sum()) == (143, 16)
    assert (score.dsc, score.iou) == (32 / 159, 16 / 143)
    a, b = plain_contour(whole), plain_contour(eroded)
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
