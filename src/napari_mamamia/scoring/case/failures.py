"""Why a case failed, from its two masks and, where given, its image: pure functions on one grid.

Everything is worked out on the joint crop of both masks. What cannot be known is not guessed: a
side needs a midline, a contrast needs an image, and a kind that cannot be judged is not named.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.metrics.nearest import nearest_distances
from napari_mamamia.metrics.surface import ContourRule, contour
from napari_mamamia.scoring.case.contrast import Enhancement, contrast_to_noise
from napari_mamamia.scoring.case.failure_kinds import (
    THRESHOLDS,
    Failure,
    FailureKind,
    FailureThresholds,
)
from napari_mamamia.scoring.case.pair import MaskPair, pair_of
from napari_mamamia.scoring.case.profiles import CLINICAL, GridRule, Profile

# The connected parts of a reference and a prediction, and which of them share a voxel.

_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedParts:
    """The 26-connected parts of both masks on the crop `box`, numbered from 1, and who meets whom.

    `lesions` (of the reference) and `parts` (of the prediction) are label arrays of the box's
    shape, 0 is background; `lesion_voxels` and `part_voxels` are their sizes, from number 1 on.
    `meets` (lesions + 1, parts + 1) is True where lesion i and part j share a voxel.
    """

    box: Box
    grid: Grid
    lesions: NDArray[np.int32]
    parts: NDArray[np.int32]
    lesion_voxels: NDArray[np.intp]
    part_voxels: NDArray[np.intp]
    meets: NDArray[np.bool_]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether each lesion shares a voxel with the prediction."""
        return np.asarray(self.meets[1:, 1:].any(axis=1))

    @property
    def true(self) -> NDArray[np.bool_]:
        """Whether each predicted part shares a voxel with the reference."""
        return np.asarray(self.meets[1:, 1:].any(axis=0))


def matched_parts(pair: MaskPair, grid: Grid) -> MatchedParts:
    """Return the parts of both masks of a pair on `grid`, 26-connected."""
    label: Any = ndimage.label  # type: ignore[attr-defined, unused-ignore]
    lesions, n_lesions = label(pair.reference != 0, structure=_TOUCHING)
    parts, n_parts = label(pair.prediction != 0, structure=_TOUCHING)
    both = (lesions > 0) & (parts > 0)
    meets = np.zeros((n_lesions + 1, n_parts + 1), dtype=np.bool_)
    meets[lesions[both], parts[both]] = True
    return MatchedParts(
        pair.box,
        grid,
        lesions,
        parts,
        np.bincount(lesions.ravel(), minlength=n_lesions + 1)[1:],
        np.bincount(parts.ravel(), minlength=n_parts + 1)[1:],
        meets,
    )


def failures_of_labels(
    reference: LabelMap,
    prediction: LabelMap | None,
    profile: Profile = CLINICAL,
    label: float | None = None,
    enhancement: Enhancement | None = None,
    thresholds: FailureThresholds = THRESHOLDS,
) -> tuple[Failure, ...]:
    """Return the failure kinds of a case from its mask files' values; () where nothing is wrong.

    Foreground is what the profile's distances count. A missing prediction (None) is a missed
    tumour; masks that the profile does not compare are a geometry mismatch and nothing else.
    """
    if prediction is None:
        prediction = LabelMap(reference.grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))
    problem = _grid_problem(reference.grid, prediction.grid, profile.grid_rule)
    if problem:
        return (Failure(FailureKind.GEOMETRY_MISMATCH, problem),)
    pair = pair_of(reference, prediction, profile, label)
    return find_failures(pair, reference.grid, enhancement, thresholds)


def failures_of_masks(
    reference: Mask,
    prediction: Mask,
    enhancement: Enhancement | None = None,
    thresholds: FailureThresholds = THRESHOLDS,
) -> tuple[Failure, ...]:
    """Return the failure kinds of two masks in memory, such as those on screen."""
    labels = []
    for mask in (reference, prediction):
        box = Box.around(mask.array)
        labels.append(LabelMap(mask.grid, box, mask.array[box.slices]))
    return failures_of_labels(labels[0], labels[1], enhancement=enhancement, thresholds=thresholds)


def find_failures(
    pair: MaskPair,
    grid: Grid,
    enhancement: Enhancement | None = None,
    thresholds: FailureThresholds = THRESHOLDS,
) -> tuple[Failure, ...]:
    """Return the failure kinds of a pair of masks on `grid`, in the order of `FailureKind`.

    Without a reference only false parts could be named, and nothing says how far away they are:
    the result is empty, as the status of the case already tells.
    """
    both = matched_parts(pair, grid)
    if not len(both.lesion_voxels):
        return ()
    found = [
        *_missed(both, thresholds),
        *_wrong_breast(both, thresholds),
        *_far_parts(both, thresholds),
        *_sizes(both, thresholds),
        *_fragmented(both, thresholds),
        *_small(both, thresholds),
    ]
    if enhancement is not None:
        found += _low_contrast(pair, grid, enhancement, thresholds)
    return (*found, *_border(pair, grid))


def midline_x_mm(grid: Grid, thresholds: FailureThresholds = THRESHOLDS) -> float:
    """Return the patient's midline as x in RAS mm: the middle of the volume; nan if undefined.

    The volume stands for the body: nothing of the image is looked at. It is undefined where the
    volume is narrower than `two_breasts_mm` from left to right, for it may hold one breast only.
    An image that is not centred on the patient shifts it.
    """
    ends = np.array(np.meshgrid(*((-0.5, n - 0.5) for n in grid.shape), indexing="ij"))
    x = grid.to_world_mm(ends.reshape(3, -1).T)[:, 0]
    if x.max() - x.min() < thresholds.two_breasts_mm:
        return float("nan")
    return float((x.min() + x.max()) / 2)


def _grid_problem(reference: Grid, prediction: Grid, rule: GridRule) -> str:
    if rule is GridRule.SAME_SHAPE and reference.shape == prediction.shape:
        return ""
    try:
        require_same_grid(reference, prediction, "the reference", "the prediction")
    except GridMismatchError as error:
        return str(error)
    return ""


def _missed(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    if not both.found.any():
        n_parts = len(both.part_voxels)
        if not n_parts:
            return [Failure(FailureKind.MISSED, "nothing is predicted")]
        said = f"{_counted(n_parts, 'predicted part')}, none shares a voxel with the reference"
        return [Failure(FailureKind.MISSED, said)]
    volumes = both.lesion_voxels * both.grid.voxel_volume_mm3
    counted = volumes >= thresholds.lesion_mm3
    left = counted & ~both.found
    if not left.any():
        return []
    said = (
        f"{np.count_nonzero(left)} of {_counted(int((counted | both.found).sum()), 'lesion')} "
        f"missed, the largest of {volumes[left].max():.0f} mm3"
    )
    return [Failure(FailureKind.LESION_MISSED, said)]


def _wrong_breast(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    if both.found.any() or not len(both.part_voxels):
        return []
    midline = midline_x_mm(both.grid, thresholds)
    expected = _centroid_x_mm(both.lesions > 0, both) - midline
    got = _centroid_x_mm(both.parts > 0, both) - midline
    if np.isnan(midline) or min(abs(expected), abs(got)) < thresholds.midline_mm:
        return []
    if (expected > 0) == (got > 0):
        return []
    said = (
        f"the reference's centre lies {_side(expected)} of the middle of the volume, "
        f"the prediction's {_side(got)}"
    )
    return [Failure(FailureKind.WRONG_BREAST, said)]


def _far_parts(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    false = np.flatnonzero(~both.true) + 1
    if not false.size:
        return []
    edge = contour(both.lesions > 0, ContourRule.CLOSED)
    rim = contour(np.where(np.isin(both.parts, false), both.parts, 0), ContourRule.CLOSED)
    places = np.argwhere(rim)
    apart = nearest_distances(places, np.argwhere(edge), both.grid.matrix_mm)
    nearest = np.full(len(both.part_voxels) + 1, np.inf)
    np.minimum.at(nearest, both.parts[tuple(places.T)], apart)
    far = false[nearest[false] >= thresholds.far_mm]
    if not far.size:
        return []
    volume = both.part_voxels[far - 1].sum() * both.grid.voxel_volume_mm3
    said = (
        f"{_counted(far.size, 'predicted part')} of {volume:.0f} mm3 in all, up to "
        f"{nearest[far].max():.0f} mm from the reference"
    )
    return [Failure(FailureKind.FAR_FALSE_POSITIVE, said)]


def _sizes(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    if not both.found.any():
        return []
    reference, found = both.lesion_voxels.sum(), []
    ratio = both.part_voxels[both.true].sum() / reference
    if ratio >= thresholds.over_ratio:
        said = f"the parts that meet the reference have {ratio:.1f} times its volume"
        found.append(Failure(FailureKind.OVER_SEGMENTATION, said))
    share = np.count_nonzero((both.lesions > 0) & (both.parts > 0)) / reference
    if share <= thresholds.under_share:
        said = f"{100 * share:.0f} % of the reference's volume is predicted"
        found.append(Failure(FailureKind.UNDER_SEGMENTATION, said))
    return found


def _fragmented(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    pieces = both.meets[1:, 1:].sum(axis=1)
    if pieces.max(initial=0) < thresholds.fragments:
        return []
    return [Failure(FailureKind.FRAGMENTED, f"one lesion is predicted in {pieces.max()} parts")]


def _small(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    volume = both.lesion_voxels.sum() * both.grid.voxel_volume_mm3
    if volume > thresholds.small_mm3:
        return []
    said = f"the reference has {volume:.0f} mm3 (small: up to {thresholds.small_mm3:.0f} mm3)"
    return [Failure(FailureKind.SMALL_TUMOUR, said)]


def _low_contrast(
    pair: MaskPair, grid: Grid, enhancement: Enhancement, thresholds: FailureThresholds
) -> list[Failure]:
    value = contrast_to_noise(
        pair.reference != 0, pair.box, grid, enhancement, thresholds.surroundings_mm
    )
    if not value <= thresholds.contrast_to_noise:
        return []
    said = (
        f"the tumour enhances {value:.1f} SD above the {thresholds.surroundings_mm:g} mm around it"
    )
    return [Failure(FailureKind.LOW_CONTRAST, said)]


def _border(pair: MaskPair, grid: Grid) -> list[Failure]:
    """Return the masks with a voxel on an outermost plane; axes of 1 voxel have no border."""
    touching = [
        name
        for name, mask in (("reference", pair.reference), ("prediction", pair.prediction))
        if _touches(mask != 0, pair.box, grid.shape)
    ]
    if not touching:
        return []
    said = f"the {' and the '.join(touching)} reach{'' if len(touching) > 1 else 'es'} "
    return [Failure(FailureKind.TOUCHES_BORDER, f"{said}the edge of the image")]


def _touches(mask: NDArray[np.bool_], box: Box, shape: tuple[int, int, int]) -> bool:
    for axis, (start, stop, n) in enumerate(zip(box.start, box.stop, shape, strict=True)):
        if n == 1 or not mask.size:
            continue
        planes = np.moveaxis(mask, axis, 0)
        if (start == 0 and planes[0].any()) or (stop == n and planes[-1].any()):
            return True
    return False


def _centroid_x_mm(mask: NDArray[np.bool_], both: MatchedParts) -> float:
    """Return the patient x (RAS mm) of the mean of a mask's voxels on the crop."""
    places = np.argwhere(mask).mean(axis=0) + np.array(both.box.start)
    return float(both.grid.to_world_mm(places)[0])


def _side(x_mm: float) -> str:
    return f"{abs(x_mm):.0f} mm to the patient's {'right' if x_mm > 0 else 'left'}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
