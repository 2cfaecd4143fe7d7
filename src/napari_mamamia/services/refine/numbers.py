"""The numbers that follow each stroke: the edited mask against the reference, on the crop."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.metrics.diameter import longest_diameter_mm
from napari_mamamia.metrics.volume import volume_mm3
from napari_mamamia.scoring.case.score import score_label_maps


@dataclass(frozen=True, slots=True)
class MaskNumbers:
    """What the page Refine shows of one mask.

    Dice and HD95 are those of the profile "clinical"; nan where they are undefined, and where there
    is no reference. `reason` says in plain words why a number is nan.
    """

    volume_mm3: float
    longest_mm: float
    dice: float = float("nan")
    hausdorff95_mm: float = float("nan")
    reason: str = ""


def empty_map(grid: Grid) -> LabelMap:
    """Return the label map of a mask with nothing in it."""
    box = Box.empty()
    return LabelMap(grid, box, np.zeros(box.shape, np.uint8))


def changed_voxels(
    start: LabelMap, labels: NDArray[np.uint8], label: int = 1
) -> tuple[Box, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return a box, and in it the voxels that `labels` has more and fewer of than `start`."""
    now = LabelMap.of(labels, start.grid)
    box = start.box.union(now.box)
    before, after = start.cut(box) == label, now.cut(box) == label
    return box, after & ~before, before & ~after


def measure_mask(
    labels: NDArray[np.uint8] | LabelMap, reference: LabelMap | None, grid: Grid, label: int = 1
) -> MaskNumbers:
    """Measure the voxels of `label`.

    Parameters
    ----------
    labels
        uint8 ``(z, y, x)``, copied on its crop at the first step, so that the caller may paint on;
        or a label map.
    reference
        The expert's mask, everything above 0 tumour; None where there is none.
    """
    report_progress(0, 2, "Measuring your mask")
    all_labels = labels if isinstance(labels, LabelMap) else LabelMap.of(labels, grid)
    ones = (all_labels.crop == label).astype(np.uint8)
    mask = LabelMap(grid, all_labels.box, ones)
    report_progress(1, 2, "Measuring your mask")
    volume = volume_mm3(ones != 0, grid.matrix_mm)
    longest = longest_diameter_mm(ones != 0, grid.matrix_mm)
    if reference is None:
        return MaskNumbers(volume, longest, reason="this case has no reference mask")
    score = score_label_maps("", reference, mask)
    reason = score.reason or score.warning or ""
    return MaskNumbers(volume, longest, score.dsc, score.hausdorff95_mm, reason)
