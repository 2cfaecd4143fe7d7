"""Measure the edited mask against the reference after each stroke, on a crop."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion
from scipy.ndimage import label as number_parts

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.metrics.diameter import longest_diameter_mm
from napari_mamamia.metrics.volume import volume_mm3
from napari_mamamia.scoring.case.score import score_label_maps


@dataclass(frozen=True, slots=True)
class MaskNumbers:
    """The measurements of one mask on the Refine page.

    Dice and HD95 follow the profile "clinical"; they are NaN if undefined or without a reference.
    `reason` explains why a value is NaN. If only a part of the reference is compared, `against`
    names this part, and `compared` has its volume and longest diameter; otherwise they are "" and
    None.
    """

    volume_mm3: float
    longest_mm: float
    dice: float = float("nan")
    hausdorff95_mm: float = float("nan")
    reason: str = ""
    against: str = ""
    compared: "MaskNumbers | None" = None


def empty_map(grid: Grid) -> LabelMap:
    """Return the label map of an empty mask."""
    box = Box.empty()
    return LabelMap(grid, box, np.zeros(box.shape, np.uint8))


def changed_voxels(
    start: LabelMap, labels: NDArray[np.uint8], label: int = 1
) -> tuple[Box, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return a box, and the voxels in it that `labels` added to and removed from `start`."""
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
        A label map, or a uint8 array ``(z, y, x)``. The array is copied on its crop first, so the
        caller may continue to paint.
    reference
        The expert's mask, in which every value above 0 is tumour, or None. If the mask has several
        lesions, only the parts of the reference that are nearest to this lesion count.
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
    compared, against = _choose_parts(reference, all_labels, label)
    if compared is None:
        nothing = MaskNumbers(0.0, float("nan"), reason=against)
        return MaskNumbers(volume, longest, reason=against, compared=nothing)
    score = score_label_maps("", compared, mask)
    reason = score.reason or score.warning or ""
    own_part = None
    if against:
        voxels = compared.foreground()
        own_part = MaskNumbers(
            volume_mm3(voxels, grid.matrix_mm), longest_diameter_mm(voxels, grid.matrix_mm)
        )
    numbers = score.dsc, score.hausdorff95_mm
    return MaskNumbers(volume, longest, *numbers, reason, against, own_part)


def _choose_parts(reference: LabelMap, labels: LabelMap, label: int) -> tuple[LabelMap | None, str]:
    """Return the parts of the reference that belong to a lesion, and a note about these parts.

    If there are several lesions, each 26-connected part belongs to the lesion with which it has
    most voxels in common, or else to the nearest lesion. If no part belongs to this lesion, the
    result is None with the reason.
    """
    lesions = [int(value) for value in np.unique(labels.crop) if value]
    parts, count = number_parts(reference.foreground(), np.ones((3, 3, 3)))
    if not set(lesions) - {label}:
        return reference, ""
    if label not in lesions:
        return None, "the mask is empty"
    if not count:
        return reference, ""
    box = reference.box
    shared = labels.cut(box)
    overlap = np.array(
        [np.bincount(parts[shared == lesion], minlength=count + 1)[1:] for lesion in lesions]
    )
    where = [
        np.argwhere(_find_rim(labels.crop == lesion)) + np.array(labels.box.start)
        for lesion in lesions
    ]
    members = []
    for number in range(1, count + 1):
        if overlap[:, number - 1].any():
            owner = int(overlap[:, number - 1].argmax())
        else:
            edge = np.argwhere(parts == number) + np.array(box.start)
            owner = _find_nearest(edge, where, reference.grid)
        members += [number] if lesions[owner] == label else []
    if not members:
        return None, "no part of the reference belongs to this lesion"
    if len(members) == count:
        return reference, ""
    chosen = np.isin(parts, members).astype(np.uint8)
    return LabelMap(
        reference.grid, box, chosen
    ), f"{len(members)} of {count} parts of the reference"


def _find_rim(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the voxels of a mask that are adjacent to voxels outside it."""
    return np.asarray(mask & ~binary_erosion(mask))


def _find_nearest(place: NDArray[np.intp], others: list[NDArray[np.intp]], grid: Grid) -> int:
    """Return the index of the set of voxels (rows) that is nearest to another set."""
    # Imported on use, because a window starts without this package.
    from scipy.spatial import cKDTree

    spacing = np.array(grid.spacing_mm)
    tree = cKDTree(place * spacing)
    return int(np.argmin([tree.query(other * spacing)[0].min() for other in others]))
