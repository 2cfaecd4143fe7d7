"""Derive the lesions and predicted boxes of a case from connected components of its masks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, foreground
from napari_mamamia.core.choices import BoxRule, LesionOverlap
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    Numbers,
    Overlaps,
    Places,
    PredictedBoxes,
    box_overlaps,
)
from napari_mamamia.metrics.lesions import Parts, parts_of
from napari_mamamia.scoring.case.profiles import CLINICAL
from napari_mamamia.scoring.case.score import laid_on


@dataclass(frozen=True, slots=True)
class PartRules:
    """How boxes of mask components are defined.

    `label` is the label value of the tumour; None means any value above 0.
    """

    overlap: LesionOverlap = LesionOverlap.BOX_IOU
    box: BoxRule = BoxRule.TIGHT
    label: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CaseParts:
    """The components of a case's two masks; `overlaps` numbers them from 0, `scores` may be NaN.

    `is_reordered` says whether the prediction had its axes in a different order than the reference.
    """

    lesion_edges_mm: Numbers
    box_edges_mm: Numbers
    scores: Numbers
    overlaps: Overlaps
    is_reordered: bool = False


def parts_of_case(
    reference: LabelMap,
    prediction: LabelMap,
    probability: LabelMap | None = None,
    rules: PartRules | None = None,
) -> CaseParts:
    """Return the 26-connected components of a reference mask and a predicted mask.

    A mask that is on the reference's grid but has its axes in a different order is reordered, not
    resampled. The score of a predicted component is the largest value of `probability` in it, or
    NaN if there is no map.

    Parameters
    ----------
    reference, prediction
        The masks.
    probability
        The probability map, or None.
    rules
        How boxes of components are defined; None for the defaults.

    Raises
    ------
    GridMismatchError
        If the masks and the map are not on the same grid.
    """
    rules = rules or PartRules()
    original = prediction
    prediction = _lay_on(reference, prediction, "the prediction")
    if probability is not None:
        probability = _lay_on(reference, probability, "the probability")
    box = reference.box.union(prediction.box)
    masks = [foreground(labels.cut(box), rules.label) for labels in (reference, prediction)]
    lesions, parts = parts_of(masks[0]), parts_of(masks[1])
    numbers = _part_numbers(parts, masks[1])
    scores = np.full(parts.n, np.nan)
    if probability is not None:
        scores = np.full(parts.n, -np.inf)
        np.maximum.at(scores, numbers, probability.cut(box)[masks[1]].astype(np.float64))
    edges = [
        _edges_mm(components, box, reference.grid, rules.box) for components in (lesions, parts)
    ]
    overlaps = _measure_overlaps(lesions, parts, masks, edges, rules.overlap)
    return CaseParts(edges[0], edges[1], scores, overlaps, prediction is not original)


def _lay_on(reference: LabelMap, other: LabelMap, name: str) -> LabelMap:
    aligned = laid_on(reference, other, CLINICAL)
    require_same_grid(reference.grid, aligned.grid, "the reference", name)
    return aligned


def _part_numbers(parts: Parts, mask: NDArray[np.bool_]) -> Places:
    if not parts.n:
        return np.zeros(0, dtype=np.intp)
    return parts.at(np.argwhere(mask))


def _edges_mm(parts: Parts, box: Box, grid: Grid, rule: BoxRule) -> Numbers:
    """Return the box (n, 6) of each component along the patient's axes, in mm.

    Each axis of the grid is treated as the patient axis closest to it, so that the boxes of an
    oblique volume have the true extent of their components along the grid's axes. A voxel extends
    half a voxel to either side of its centre; for boxes as in nnDetection, it extends a whole
    voxel.
    """
    _, height, width = parts.padded
    z, rest = np.divmod(parts.starts, height * width)
    y, x = np.divmod(rest, width)
    last_x = x + (parts.stops - parts.starts) - 1
    low = np.full((parts.n, 3), np.iinfo(np.intp).max)
    high = np.zeros((parts.n, 3), dtype=np.intp)
    for axis, (first, last) in enumerate(((z, z), (y, y), (x, last_x))):
        np.minimum.at(low[:, axis], parts.numbers, first)
        np.maximum.at(high[:, axis], parts.numbers, last)
    reach = 1.0 if rule is BoxRule.NNDETECTION else 0.5
    ends = low + box.start - reach, high + box.start + reach
    edges = np.empty((parts.n, 6))
    for axis, letter in zip((2, 1, 0), grid.orientation, strict=True):
        patient_axis = next(k for k, pair in enumerate(("RL", "AP", "SI")) if letter in pair)
        step = grid.spacing_mm[axis] * (1 if letter in "RAS" else -1)
        both = np.sort([grid.affine[patient_axis, 3] + step * end[:, axis] for end in ends], axis=0)
        edges[:, 2 * patient_axis], edges[:, 2 * patient_axis + 1] = both
    return edges


def _measure_overlaps(
    lesions: Parts,
    parts: Parts,
    masks: list[NDArray[np.bool_]],
    edges: list[Numbers],
    kind: LesionOverlap,
) -> Overlaps:
    if kind is LesionOverlap.BOX_IOU:
        same = np.zeros(lesions.n, dtype=np.intp), np.zeros(parts.n, dtype=np.intp)
        return box_overlaps(
            Lesions(same[0], edges[0], np.full(lesions.n, np.nan)),
            PredictedBoxes(same[1], edges[1], np.zeros(parts.n), np.full(parts.n, np.nan)),
        )
    both = masks[0] & masks[1]
    met, boxes = _part_numbers(lesions, both), _part_numbers(parts, both)
    pairs, shared = np.unique(boxes * max(lesions.n, 1) + met, return_counts=True)
    boxes, met = np.divmod(pairs, max(lesions.n, 1))
    together = parts.voxels[boxes] + lesions.voxels[met]
    if kind is LesionOverlap.MASK_DICE:
        return Overlaps(boxes, met, 2 * shared / together, kind)
    return Overlaps(boxes, met, shared / (together - shared), kind)
