"""The list of metrics as data: for tables, the window, reports and docs/methods/case_metrics.md."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Better(StrEnum):
    """Which way a metric improves."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One number of a `CaseScore`.

    `name` is the column, `label` what the user reads (without unit), `unit` "mm", "voxels", "mm3"
    or "" for a share of 1, `definition` one sentence or two, `oracle` the program or source that
    our number was compared with in the tests.
    """

    name: str
    label: str
    unit: str
    better: Better
    definition: str
    oracle: str


_CLOSED: Final = (
    "Contour: foreground voxels with a background face neighbour, where beyond the image counts "
    "as background; distances between voxel centres in mm, by the whole 3x3 affine."
)
_OPEN: Final = (
    "Contour: foreground voxels with a differing face neighbour inside the image, so the image "
    "border is no contour; distances in voxel index units, spacing ignored."
)
_DIRECTED: Final = "linearly interpolated, the larger of the two directions."

METRICS: Final[tuple[MetricSpec, ...]] = (
    MetricSpec(
        "dsc",
        "Dice",
        "",
        Better.HIGHER,
        "Twice the shared voxels over the sum of both masks' voxels.",
        "SimpleITK LabelOverlapMeasures",
    ),
    MetricSpec(
        "iou",
        "IoU",
        "",
        Better.HIGHER,
        "Shared voxels over the voxels of either mask.",
        "SimpleITK LabelOverlapMeasures (Jaccard)",
    ),
    MetricSpec(
        "hausdorff95_mm",
        "HD95",
        "mm",
        Better.LOWER,
        f"95th percentile of the distances to the other contour, {_DIRECTED} {_CLOSED}",
        "MONAI compute_hausdorff_distance, percentile 95, with spacing",
    ),
    MetricSpec(
        "hausdorff95_voxels",
        "HD95",
        "voxels",
        Better.LOWER,
        f"95th percentile of the distances to the other contour, {_DIRECTED} {_OPEN}",
        "an independent slow implementation of what the challenge's published per-case function "
        "computes (LidiaGarrucho/MAMA-MIA, commit bfc321a4), bit for bit; SimpleITK LabelContour",
    ),
    MetricSpec(
        "hausdorff_mm",
        "HD",
        "mm",
        Better.LOWER,
        f"Largest distance from either contour to the other. {_CLOSED}",
        "MONAI compute_hausdorff_distance, with spacing; SimpleITK HausdorffDistance where the "
        "masks are filled sets that it defines alike",
    ),
    MetricSpec(
        "assd_mm",
        "ASSD",
        "mm",
        Better.LOWER,
        f"Mean distance to the other contour over all contour voxels of both masks. {_CLOSED}",
        "MONAI compute_average_surface_distance, symmetric, with spacing",
    ),
    MetricSpec(
        "nsd_1mm",
        "NSD 1 mm",
        "",
        Better.HIGHER,
        "Share of all contour voxels of both masks that lie within 1 mm of the other contour, by "
        f"voxel count. {_CLOSED}",
        "MONAI compute_surface_dice, threshold 1 mm, with spacing, without subvoxels",
    ),
    MetricSpec(
        "nsd_2mm",
        "NSD 2 mm",
        "",
        Better.HIGHER,
        "Share of all contour voxels of both masks that lie within 2 mm of the other contour, by "
        f"voxel count. {_CLOSED}",
        "MONAI compute_surface_dice, threshold 2 mm, with spacing, without subvoxels",
    ),
    MetricSpec(
        "norm_hd",
        "NormHD",
        "",
        Better.LOWER,
        "Hausdorff distance divided by 150, as the profile defines it: which distance, which unit, "
        "clipped to 1 or not, and what empty masks count.",
        "official-code: an independent slow implementation, bit for bit",
    ),
    MetricSpec(
        "volume_reference_mm3",
        "Volume of the reference",
        "mm3",
        Better.NEITHER,
        "Foreground voxels times |det| of the affine's 3x3 part.",
        "PyRadiomics VoxelVolume",
    ),
    MetricSpec(
        "volume_prediction_mm3",
        "Volume of the prediction",
        "mm3",
        Better.NEITHER,
        "Foreground voxels times |det| of the affine's 3x3 part.",
        "PyRadiomics VoxelVolume",
    ),
    MetricSpec(
        "diameter_reference_mm",
        "Longest diameter of the reference",
        "mm",
        Better.NEITHER,
        "Largest distance between the centres of two foreground voxels, by the whole 3x3 affine: "
        "the largest Feret diameter of the 3-D convex hull; all parts of the mask count together.",
        "SimpleITK LabelShapeStatistics, Feret diameter; a plain loop over all pairs",
    ),
)
"""In the order of `CaseScore`'s columns."""


def metric(name: str) -> MetricSpec:
    """Return the metric of that column name.

    Raises
    ------
    ValueError
        If no metric has that name; the message lists them.

    Examples
    --------
    >>> metric("hausdorff95_mm").unit
    'mm'
    """
    for spec in METRICS:
        if spec.name == name:
            return spec
    known = ", ".join(spec.name for spec in METRICS)
    raise ValueError(f"there is no metric named {name!r}; the metrics are {known}")
