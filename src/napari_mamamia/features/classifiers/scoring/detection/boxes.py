"""Boxes in mm along the patient's axes: their sizes, risks by size, and overlaps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import LesionOverlap, RiskModel

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

EDGES: Final = ("x1", "x2", "y1", "y2", "z1", "z2")
"""Names of a box's edges in mm: x is left to right, y front to back, z along the body."""

LARGEST_RISK: Final = 0.641
"""Divisor for the 2018 polynomial; quotients above 1 are set to 1."""

_SOPIK: Final = (2.28e-7, -8.75e-5, 1.23e-2, 1.37e-3)
_PAIRS: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Lesions:
    """The lesions of all cases.

    `cases` (n,) is the index of each lesion's case in the list of cases, and `edges_mm` (n, 6) is
    its box with the columns `EDGES`. `risks` (n,) range from 0 to 1; NaN means that the risk is
    derived from the size.
    """

    cases: Places
    edges_mm: Numbers
    risks: Numbers

    @property
    def sizes_mm(self) -> Numbers:
        """Return the longest side of each box in the axial plane."""
        return axial_box_side_mm(self.edges_mm)


@dataclass(frozen=True, slots=True, eq=False)
class PredictedBoxes:
    """The predicted boxes of all cases; fields with the same name are as in `Lesions`.

    `scores` (n,) can be any numbers; a higher score means more certainty. An unreadable box has NaN
    edges and the score inf, so that it is a false positive at every threshold.
    """

    cases: Places
    edges_mm: Numbers
    scores: Numbers
    risks: Numbers

    @property
    def sizes_mm(self) -> Numbers:
        """Return the longest side of each box in the axial plane; NaN if unknown."""
        return axial_box_side_mm(self.edges_mm)


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """Overlaps (0 to 1) between predicted boxes and lesions of the same case.

    `predictions` and `lesions` (k,) are row indices in `PredictedBoxes` and `Lesions`.
    """

    predictions: Places
    lesions: Places
    values: Numbers
    kind: LesionOverlap = LesionOverlap.BOX_IOU


def axial_box_side_mm(edges_mm: Numbers) -> Numbers:
    """Return the longest side of boxes (n, 6) in the axial plane, in mm.

    This size is not the Feret diameter. Source: Bounias et al., Comput. Biol. Med. 2025, caption of
    Fig. 2.

    Examples
    --------
    >>> axial_box_side_mm(np.array([[0.0, 30, 10, 22, 0, 90]])).tolist()
    [30.0]
    """
    sides: Numbers = np.maximum(edges_mm[:, 1] - edges_mm[:, 0], edges_mm[:, 3] - edges_mm[:, 2])
    return sides


def risk_of_size(sizes_mm: Numbers, model: RiskModel = RiskModel.SOPIK_2018) -> Numbers:
    """Return the risk (0 to 1) of lesions of a given size in mm; NaN if the size is NaN.

    `SOPIK_2018` is p/0.641 limited to 1 with p = 2.28e-7 s^3 - 8.75e-5 s^2 + 1.23e-2 s + 1.37e-3
    (Bounias et al., Eq. 6); `VERSCHRAEGEN_2005` is exp(-exp(-(s - 15)/10)).

    Parameters
    ----------
    sizes_mm
        Axial box sides.
    model
        The published model.

    Examples
    --------
    >>> risk_of_size(np.array([10.0, 30.0, 150.0])).round(6).tolist()
    [0.18073, 0.464549, 1.0]
    """
    sizes = np.asarray(sizes_mm, dtype=np.float64)
    if model is RiskModel.VERSCHRAEGEN_2005:
        late: Numbers = np.exp(-np.exp(-(sizes - 15) / 10))
        return late
    share: Numbers = np.clip(np.polyval(_SOPIK, sizes) / LARGEST_RISK, 0, 1)
    return share


def box_overlaps(lesions: Lesions, predictions: PredictedBoxes) -> Overlaps:
    """Compute the intersection over union of every overlapping lesion and box in a case.

    Volumes are products of the sides; boxes that only touch do not overlap.

    Parameters
    ----------
    lesions
        The lesions of all cases.
    predictions
        The predicted boxes of all cases.
    """
    parts = list(_overlap_blocks(lesions, predictions))
    if not parts:
        nothing = np.zeros(0, dtype=np.intp)
        return Overlaps(nothing, nothing, np.zeros(0))
    boxes, met, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Overlaps(boxes, met, values)


def _overlap_blocks(
    lesions: Lesions, predictions: PredictedBoxes
) -> Iterator[tuple[Places, Places, Numbers]]:
    order = np.argsort(lesions.cases, kind="stable")
    in_order = lesions.cases[order]
    first = np.searchsorted(in_order, predictions.cases)
    n_here = np.searchsorted(in_order, predictions.cases, side="right") - first
    volumes, box_volumes = _volumes_mm3(lesions.edges_mm), _volumes_mm3(predictions.edges_mm)
    behind = np.cumsum(n_here)
    start = 0
    while start < behind.size:
        before = behind[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(behind, before + _PAIRS)))
        counts = n_here[start:stop]
        boxes = np.repeat(np.arange(start, stop), counts)
        within = np.arange(boxes.size) - np.repeat(np.cumsum(counts) - counts, counts)
        met = order[np.repeat(first[start:stop], counts) + within]
        shared = _shared_mm3(predictions.edges_mm[boxes], lesions.edges_mm[met])
        hit = np.flatnonzero(
            shared > 0
        )  # The comparison is false for the NaN edges of an unreadable box.
        boxes, met, shared = boxes[hit], met[hit], shared[hit]
        yield boxes, met, shared / (box_volumes[boxes] + volumes[met] - shared)
        start = stop


def _volumes_mm3(edges_mm: Numbers) -> Numbers:
    sides = edges_mm[:, 1::2] - edges_mm[:, ::2]
    volumes: Numbers = sides[:, 0] * sides[:, 1] * sides[:, 2]
    return volumes


def _shared_mm3(one_mm: Numbers, other_mm: Numbers) -> Numbers:
    low = np.maximum(one_mm[:, ::2], other_mm[:, ::2])
    high = np.minimum(one_mm[:, 1::2], other_mm[:, 1::2])
    sides = np.maximum(high - low, 0)
    shared: Numbers = sides[:, 0] * sides[:, 1] * sides[:, 2]
    return shared
