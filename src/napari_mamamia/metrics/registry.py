"""The table of metrics (`METRICS`), which defines how each is computed, labelled and displayed.

The table is used by scores and tables (CSV, spreadsheets, `mm.score`), `mm.metrics.measure`, the
window, the terminal, the report and docs/methods/case_metrics.md. A new metric needs a function in
this package, an entry here and a field of `CaseScore`. A different package can add a metric by an
entry point `napari_mamamia.metrics`; its value is stored in `CaseScore.further`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.plugins import Registry
from napari_mamamia.core.records import METRIC_GROUP
from napari_mamamia.metrics.compared import ComparedMasks
from napari_mamamia.metrics.diameter import longest_diameter_mm
from napari_mamamia.metrics.surface import assd, hausdorff, hausdorff95, nsd
from napari_mamamia.metrics.volume import volume_mm3

PairMeasure: TypeAlias = Callable[[ComparedMasks], float]
MaskMeasure: TypeAlias = Callable[[NDArray[np.bool_], NDArray[np.float64]], float]
"""A function of a single mask and `matrix_mm` (3x3).

The mask is a bool array (z, y, x), or a crop that contains its foreground.
"""

_MM3_PER_ML: Final = 1000.0


class Better(StrEnum):
    """The direction in which a metric improves."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Place(StrEnum):
    """Where a metric is displayed; written tables contain every metric."""

    CASE = "case"
    """The Score page, for the open case."""
    CASES = "cases"
    """The tables of cases in the terminal and at the bottom of the window."""
    REPORT = "report"
    """The table of cases in the report on the screen."""
    PAPER = "paper"
    """The table of cases in the printed report, which has room for few columns."""


_ON_SCREEN: Final = frozenset({Place.CASE, Place.CASES, Place.REPORT})


@dataclass(frozen=True, slots=True)
class Shown:
    """How a value is displayed: divided by `divisor`, in `unit`, with `decimals` decimal places."""

    unit: str
    divisor: float
    decimals: int


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric, stored as one number in a `CaseScore`.

    A metric without any of the three functions below is computed by the profile.

    Parameters
    ----------
    name
        The column name.
    label
        The name for the user, without unit.
    unit
        "mm", "voxels", "mm3", or "" for a fraction of 1.
    decimals
        The number of decimals in that unit.
    meaning
        A plain description for the window.
    formula, source, oracle
        Entries in docs/methods/case_metrics.md: the formula (R and P are the contours of the masks
        A
        and B), its source, and the program with which our number is compared in the tests.
    of_pair
        The function of two masks; it returns NaN where the metric is undefined.
    of_reference, of_prediction
        The function of a single mask, for a metric that does not need the other mask.
    both_empty_by_profile
        Whether the profile defines the value for two empty masks.
    places
        The places that display the metric. The report contains every metric that the window
        displays.
    short
        The label for narrow places, or "" to use `label`.
    """

    name: str
    label: str
    unit: str
    better: Better
    decimals: int
    meaning: str
    formula: str
    source: str
    oracle: str
    of_pair: PairMeasure | None = None
    of_reference: MaskMeasure | None = None
    of_prediction: MaskMeasure | None = None
    both_empty_by_profile: bool = False
    places: frozenset[Place] = _ON_SCREEN
    short: str = ""

    @property
    def heading(self) -> str:
        """The metric's column heading in a table."""
        return self.short or self.label

    @property
    def in_tables(self) -> Shown:
        """How the metric is displayed in a table of cases, where volumes are in ml."""
        if self.unit == "mm3":
            return Shown("ml", _MM3_PER_ML, 2)
        return Shown(self.unit, 1.0, self.decimals)


METRICS: Final[tuple[MetricSpec, ...]] = (
    MetricSpec(
        "dsc",
        "Dice",
        "",
        Better.HIGHER,
        3,
        "twice the common volume divided by the sum of both volumes; 1 is best",
        "2·|A∩B| / (|A|+|B|)",
        "Dice, Ecology 26 (1945) 297",
        "SimpleITK LabelOverlapMeasures",
        of_pair=lambda pair: pair.dice_and_iou[0],
        both_empty_by_profile=True,
        places=frozenset(Place),
    ),
    MetricSpec(
        "iou",
        "IoU",
        "",
        Better.HIGHER,
        3,
        "the common volume divided by the volume of the union; 1 is best",
        "|A∩B| / |A∪B|",
        "Jaccard, New Phytologist 11 (1912) 37",
        "SimpleITK LabelOverlapMeasures",
        of_pair=lambda pair: pair.dice_and_iou[1],
        both_empty_by_profile=True,
        places=frozenset(),
    ),
    MetricSpec(
        "hausdorff95_mm",
        "HD95",
        "mm",
        Better.LOWER,
        1,
        "95th percentile of the distances between the two surfaces; 0 is best",
        "max(P95 of d(r→P), P95 of d(p→R)), closed contour; percentiles interpolated linearly",
        "Huttenlocher et al., IEEE TPAMI 15 (1993) 850",
        "MONAI compute_hausdorff_distance(percentile=95, spacing)",
        of_pair=lambda pair: hausdorff95(pair.mm),
        places=frozenset(Place),
    ),
    MetricSpec(
        "norm_hd",
        "NormHD",
        "",
        Better.LOWER,
        3,
        "distance as defined by the profile, divided by the divisor of the profile; 0 is best",
        "Hausdorff distance / 150 as the profile defines it (distance, unit, clipping and empty "
        "masks: see the table of profiles below)",
        "the challenge's paper and scripts",
        "an independent slow implementation, bit for bit on 2,400 random pairs",
        places=frozenset({Place.CASES, Place.REPORT, Place.PAPER}),
    ),
    MetricSpec(
        "hausdorff95_voxels",
        "HD95",
        "voxels",
        Better.LOWER,
        1,
        "95th percentile of the distances between the two surfaces in voxels; 0 is best",
        "as `hausdorff95_mm` in index steps, open contour",
        "LidiaGarrucho/MAMA-MIA, commit bfc321a4 (behaviour, no code)",
        "an independent slow implementation, bit for bit on 2,400 random pairs; SimpleITK "
        "LabelContour with SciPy trees",
        of_pair=lambda pair: hausdorff95(pair.voxels),
        places=frozenset({Place.REPORT}),
    ),
    MetricSpec(
        "hausdorff_mm",
        "HD",
        "mm",
        Better.LOWER,
        1,
        "largest distance between the two surfaces; 0 is best",
        "max of all d(r→P) and d(p→R), closed contour",
        "as `hausdorff95_mm`",
        "MONAI (percentile=None); SimpleITK HausdorffDistance on shifted boxes, where filled sets "
        "and contours agree",
        of_pair=lambda pair: hausdorff(pair.mm),
        places=frozenset({Place.CASE, Place.REPORT}),
    ),
    MetricSpec(
        "assd_mm",
        "ASSD",
        "mm",
        Better.LOWER,
        2,
        "mean distance between the two surfaces; 0 is best",
        "(Σ d(r→P) + Σ d(p→R)) / (|R|+|P|): pooled, so that the longer contour has more weight",
        "Heimann et al., IEEE TMI 28 (2009) 1251",
        "MONAI compute_average_surface_distance(symmetric=True)",
        of_pair=lambda pair: assd(pair.mm),
        places=frozenset({Place.CASE, Place.REPORT}),
    ),
    MetricSpec(
        "nsd_1mm",
        "NSD 1 mm",
        "",
        Better.HIGHER,
        3,
        "fraction of both surfaces that lies within 1 mm of the other surface; 1 is best",
        "fraction of the voxels of R and P with d ≤ 1 mm; voxels are counted, areas are not "
        "weighted",
        "after Nikolov et al., J Med Internet Res 23 (2021) e26151",
        "MONAI compute_surface_dice without subvoxels",
        of_pair=lambda pair: nsd(pair.mm, 1.0),
    ),
    MetricSpec(
        "nsd_2mm",
        "NSD 2 mm",
        "",
        Better.HIGHER,
        3,
        "fraction of both surfaces that lies within 2 mm of the other surface; 1 is best",
        "as `nsd_1mm`, with d ≤ 2 mm",
        "as `nsd_1mm`",
        "MONAI compute_surface_dice without subvoxels",
        of_pair=lambda pair: nsd(pair.mm, 2.0),
        places=frozenset({Place.REPORT}),
    ),
    MetricSpec(
        "volume_reference_mm3",
        "Volume of the reference",
        "mm3",
        Better.NEITHER,
        0,
        "volume of the reference mask",
        "voxels · |det(affine 3×3)|",
        "geometry",
        "PyRadiomics VoxelVolume (132.4258 mm³ for its breast1 mask of 143 voxels)",
        of_reference=volume_mm3,
        places=frozenset({Place.CASES, Place.REPORT, Place.PAPER}),
        short="reference",
    ),
    MetricSpec(
        "volume_prediction_mm3",
        "Volume of the prediction",
        "mm3",
        Better.NEITHER,
        0,
        "volume of the prediction",
        "as `volume_reference_mm3`",
        "geometry",
        "as `volume_reference_mm3`",
        of_prediction=volume_mm3,
        places=frozenset({Place.CASES, Place.REPORT, Place.PAPER}),
        short="prediction",
    ),
    MetricSpec(
        "diameter_reference_mm",
        "Longest diameter of the reference",
        "mm",
        Better.NEITHER,
        1,
        "largest distance between two voxels of the reference mask",
        "largest distance between the centres of two foreground voxels of the reference, by the "
        "full affine (largest Feret diameter of the 3-D hull); all components count together; 0 "
        "for one voxel",
        "Beare and Lehmann, The Insight Journal 2006 (ITK LabelShapeStatistics)",
        "SimpleITK Feret diameter (1e-9), all pairs (1e-12)",
        of_reference=longest_diameter_mm,
        places=frozenset({Place.REPORT}),
        short="longest diameter",
    ),
)
"""All metrics in display order; files use the field order of `CaseScore`."""


METRIC_REGISTRY: Final = Registry(
    METRIC_GROUP, MetricSpec, MappingProxyType({spec.name: spec for spec in METRICS})
)
"""`METRICS`, followed by the metrics of installed packages."""


def list_metrics() -> tuple[MetricSpec, ...]:
    """Return all metrics, including those of installed packages."""
    return tuple(METRIC_REGISTRY.values())


def metric(name: str) -> MetricSpec:
    """Return the metric with this column name.

    Raises
    ------
    ValueError
        If no metric has that name; the message lists all names.

    Examples
    --------
    >>> metric("hausdorff95_mm").unit
    'mm'
    """
    if name in METRIC_REGISTRY:
        return METRIC_REGISTRY[name]
    names = ", ".join(METRIC_REGISTRY)
    raise ValueError(f"expected the metric to be one of {names}, but it is {name!r}")


def metrics_at(place: Place) -> tuple[MetricSpec, ...]:
    """Return the metrics that `place` displays, in display order."""
    return tuple(spec for spec in list_metrics() if place in spec.places)


def pair_values(pair: ComparedMasks) -> dict[str, float]:
    """Return every metric of two masks by name; undefined metrics are NaN."""
    return {spec.name: spec.of_pair(pair) for spec in list_metrics() if spec.of_pair}


def reference_values(mask: NDArray[np.bool_], matrix_mm: NDArray[np.float64]) -> dict[str, float]:
    """Return, by name, every metric that describes only the reference.

    Parameters
    ----------
    mask
        A boolean array (z, y, x), or any crop that contains its foreground.
    matrix_mm
        3x3 matrix with the steps along (z, y, x) in mm as columns.
    """
    return {s.name: s.of_reference(mask, matrix_mm) for s in list_metrics() if s.of_reference}


def prediction_values(mask: NDArray[np.bool_], matrix_mm: NDArray[np.float64]) -> dict[str, float]:
    """Return, by name, every metric that describes only the prediction.

    Parameters
    ----------
    mask
        A boolean array (z, y, x), or any crop that contains its foreground.
    matrix_mm
        3x3 matrix with the steps along (z, y, x) in mm as columns.
    """
    return {s.name: s.of_prediction(mask, matrix_mm) for s in list_metrics() if s.of_prediction}
