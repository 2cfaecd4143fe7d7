"""Our numbers beside those of programs that we did not write, where definitions coincide."""

import numpy as np
import pytest

from napari_mamamia.metrics.overlap import dice, iou
from napari_mamamia.metrics.surface import (
    ContourRule,
    assd,
    hausdorff,
    hausdorff95,
    nsd,
    surface_distances,
)

pytestmark = pytest.mark.parity

SPACING = (2.0, 0.7, 0.9)


def blob(rng, shape=(16, 22, 24)):
    """A rough ellipsoid, sometimes with a far satellite and cut off by the image border."""
    z, y, x = np.indices(shape)
    centre, radii = rng.uniform(0.2, 0.8, 3) * shape, rng.uniform(2, 7, 3)
    where = sum(
        ((i - c) / r) ** 2 for i, c, r in zip((z, y, x), centre, radii, strict=True)
    ) + rng.normal(0, 0.15, shape)
    mask = where < 1
    if rng.random() < 0.4:
        mask[tuple(rng.integers(0, n) for n in shape)] = True
    mask[tuple(int(min(c, n - 1)) for c, n in zip(centre, shape, strict=True))] = True
    return mask


PAIRS = [(blob(np.random.default_rng(s)), blob(np.random.default_rng(s + 500))) for s in range(40)]


def as_batch(mask):
    import torch

    return torch.from_numpy(mask[None, None].astype(np.float32))


@pytest.mark.parametrize("spacing", [SPACING, (1.0, 1.0, 1.0)])
@pytest.mark.parametrize("percentile", [95, None])
def test_hausdorff_distances_equal_monai(spacing, percentile):
    metrics = pytest.importorskip("monai.metrics")
    ours = hausdorff if percentile is None else hausdorff95
    for a, b in PAIRS:
        theirs = metrics.compute_hausdorff_distance(
            as_batch(b), as_batch(a), include_background=True, percentile=percentile,
            spacing=list(spacing),
        )  # fmt: skip
        # MONAI keeps distances in float32
        assert ours(surface_distances(a, b, np.diag(spacing))) == pytest.approx(
            float(theirs), rel=1e-5
        )


def test_assd_equals_monai():
    metrics = pytest.importorskip("monai.metrics")
    for a, b in PAIRS:
        theirs = metrics.compute_average_surface_distance(
            as_batch(b), as_batch(a), include_background=True, symmetric=True,
            spacing=list(SPACING),
        )  # fmt: skip
        assert assd(surface_distances(a, b, np.diag(SPACING))) == pytest.approx(
            float(theirs), rel=1e-5
        )


@pytest.mark.parametrize("tolerance", [1.0, 2.0])
def test_nsd_equals_monai(tolerance):
    metrics = pytest.importorskip("monai.metrics")
    for a, b in PAIRS:
        theirs = metrics.compute_surface_dice(
            as_batch(b), as_batch(a), [tolerance], include_background=True, spacing=list(SPACING)
        )
        assert nsd(surface_distances(a, b, np.diag(SPACING)), tolerance) == pytest.approx(
            float(theirs), rel=1e-5
        )


def test_dice_and_iou_equal_simpleitk():
    sitk = pytest.importorskip("SimpleITK")
    for a, b in PAIRS:
        overlap = sitk.LabelOverlapMeasuresImageFilter()
        overlap.Execute(*(sitk.GetImageFromArray(m.astype(np.uint8)) for m in (a, b)))
        assert dice(a, b) == pytest.approx(overlap.GetDiceCoefficient(), abs=1e-14)
        assert iou(a, b) == pytest.approx(overlap.GetJaccardCoefficient(), abs=1e-14)


def test_hausdorff_equals_simpleitk_where_filled_sets_and_contours_agree():
    # SimpleITK measures from all foreground voxels to the filled other mask: equal to contours
    # for boxes of one size that are shifted, where the farthest voxel lies outside the other box
    sitk = pytest.importorskip("SimpleITK")
    for shift in [(1, 0, 0), (2, 3, 1), (0, 5, 0), (4, 0, 2)]:
        a = np.zeros((16, 22, 24), dtype=bool)
        a[3:9, 4:11, 5:12] = True
        b = np.roll(a, shift, (0, 1, 2))
        images = [sitk.GetImageFromArray(m.astype(np.uint8)) for m in (a, b)]
        for image in images:
            image.SetSpacing(SPACING[::-1])
        theirs = sitk.HausdorffDistanceImageFilter()
        theirs.Execute(*images)
        ours = hausdorff(surface_distances(a, b, np.diag(SPACING)))
        assert ours == pytest.approx(theirs.GetHausdorffDistance(), rel=1e-6)


def test_single_voxels_and_shifted_boxes_equal_surface_distance():
    # its surface runs between voxel centres, ours through them: equal where one mask is the other
    # one moved far enough that no part of the two surfaces coincides
    peer = pytest.importorskip("surface_distance")
    for size, shift in [(1, (2, 3, 4)), (2, (6, 0, 0)), (2, (4, 5, 3))]:
        a = np.zeros((16, 22, 24), dtype=bool)
        a[3 : 3 + size, 4 : 4 + size, 5 : 5 + size] = True
        b = np.roll(a, shift, (0, 1, 2))
        theirs = peer.compute_robust_hausdorff(peer.compute_surface_distances(a, b, SPACING), 100)
        assert hausdorff(surface_distances(a, b, np.diag(SPACING))) == pytest.approx(theirs)


def test_the_open_rule_is_simpleitks_label_contour():
    sitk = pytest.importorskip("SimpleITK")
    from napari_mamamia.metrics.surface import contour

    rng = np.random.default_rng(0)
    for n_labels in (2, 3, 4):
        for _ in range(30):
            labels = rng.integers(0, n_labels, rng.integers(1, 7, 3)).astype(np.uint8)
            theirs = sitk.GetArrayFromImage(sitk.LabelContour(sitk.GetImageFromArray(labels))) != 0
            assert np.array_equal(contour(labels, ContourRule.OPEN), theirs)
