"""Find how and why a case failed, from its masks and optional images.

All numbers are computed on the joint crop of the two masks. Nothing is guessed: the side of a
lesion needs a midline, contrast needs images, and a kind of failure that cannot be determined is
not reported.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, pi
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.scoring.case.score import MaskPair, MeasuredPair, touched_axes


class FailureKind(StrEnum):
    """Reason why a case failed or is hard; the value is the text for users."""

    GEOMETRY_MISMATCH = "geometry mismatch"
    MISSED = "missed"
    LESION_MISSED = "one of several missed"
    WRONG_BREAST = "wrong breast"
    FAR_FALSE_POSITIVE = "false positive far away"
    OVER_SEGMENTATION = "over-segmentation"
    UNDER_SEGMENTATION = "under-segmentation"
    FRAGMENTED = "fragmented"
    SMALL_TUMOUR = "small tumour"
    LOW_CONTRAST = "low contrast"
    TOUCHES_BORDER = "touching the image border"

    @property
    def is_circumstance(self) -> bool:
        """Whether this kind marks a hard case; a good prediction can also have such a kind."""
        return self in _CIRCUMSTANCES


_CIRCUMSTANCES: Final = (
    FailureKind.SMALL_TUMOUR,
    FailureKind.LOW_CONTRAST,
    FailureKind.TOUCHES_BORDER,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure kind of a case, and the reason as a sentence with numbers and units."""

    kind: FailureKind
    reason: str


@dataclass(frozen=True, slots=True)
class FailureThresholds:
    """Thresholds of the failure kinds; a value equal to a threshold counts as a failure.

    Parameters
    ----------
    far_mm
        Smallest distance in mm from a predicted part that shares no voxel with the reference to the
        nearest voxel of the reference, at which the part is far away. Our choice exceeds the
        outline errors of one tumour.
    over_ratio
        Volume of the predicted parts that share a voxel with the reference, divided by the
        reference's volume (our choice: 2).
    under_share
        Fraction of the reference's volume that is predicted (our choice: 0.5).
    fragments
        Number of predicted parts that share a voxel with the same lesion (our choice: 3).
    lesion_mm3
        Smallest volume of a missed lesion that counts if another lesion was found, because smaller
        parts of a reference are specks of its outline. Our choice is a sphere of 5 mm diameter, the
        limit of T1a in the AJCC Cancer Staging Manual, 8th edition.
    small_mm3
        Largest volume of a small tumour, by default a sphere of 10 mm diameter, the limit of T1b in
        the same manual. The paper uses the cohort's 20th percentile, which can be passed instead.
    midline_mm
        Distance from the midline below which a centroid is on neither side (our choice).
    two_breasts_mm
        Width along the patient's left-right axis below which a volume may contain only one breast,
        so that its middle is not the midline. Our choice assumes that one-sided sagittal volumes
        are under 200 mm wide, and two-sided volumes above 280 mm.
    contrast_to_noise
        Highest contrast-to-noise ratio of a tumour with low contrast (our choice: 1). The ratio is
        the mean enhancement of the tumour minus that of its surroundings, in standard deviations of
        the surroundings.
    surroundings_mm
        Width of the shell around the reference that counts as its surroundings (our choice).
    """

    far_mm: float = 20.0
    over_ratio: float = 2.0
    under_share: float = 0.5
    fragments: int = 3
    lesion_mm3: float = pi / 6 * 5.0**3
    small_mm3: float = pi / 6 * 10.0**3
    midline_mm: float = 10.0
    two_breasts_mm: float = 240.0
    contrast_to_noise: float = 1.0
    surroundings_mm: float = 8.0


THRESHOLDS: Final = FailureThresholds()
"""Default thresholds for reports."""


@dataclass(frozen=True, slots=True, eq=False)
class Enhancement:
    """The pre-contrast and first post-contrast phases as arrays (z, y, x) on the masks' grid."""

    before: NDArray[Any]
    after: NDArray[Any]


def contrast_to_noise(
    reference: NDArray[np.bool_],
    box: Box,
    grid: Grid,
    enhancement: Enhancement,
    surroundings_mm: float,
) -> float:
    """Return the contrast-to-noise ratio of a tumour's enhancement, or nan if undefined.

    The ratio is (mean inside - mean around)/(SD around). `reference` is a bool array on `box`.
    "Around" is a shell of `surroundings_mm` around the mask, inside the image. The ratio is
    undefined if the shell has fewer than 2 voxels or only equal values.

    Raises
    ------
    GridMismatchError
        If a phase does not have the shape of the grid.
    """
    for phase in (enhancement.before, enhancement.after):
        if phase.shape != grid.shape:
            raise GridMismatchError(
                f"expected the phases to have the shape of the masks, {grid.shape} (z, y, x), but "
                f"a phase has {phase.shape}: pass the phases of the same case"
            )
    tumour_box = Box.around(reference)
    if tumour_box.is_empty:
        return float("nan")
    steps = [ceil(surroundings_mm / mm) for mm in grid.spacing_mm]
    there = [a + o for a, o in zip(tumour_box.start, box.start, strict=True)]
    stop = [a + n for a, n in zip(there, tumour_box.shape, strict=True)]
    wide = Box((there[0], there[1], there[2]), (stop[0], stop[1], stop[2]))
    wide = wide.grown(steps, grid.shape)
    mask = np.pad(
        reference[tumour_box.slices],
        [(a - o, p - b) for a, b, o, p in zip(there, stop, wide.start, wide.stop, strict=True)],
    )
    gain = enhancement.after[wide.slices].astype(np.float32) - enhancement.before[wide.slices]
    distance: Any = ndimage.distance_transform_edt  # type: ignore[attr-defined, unused-ignore]
    around = distance(~mask, sampling=grid.spacing_mm) <= surroundings_mm
    around &= ~mask
    if np.count_nonzero(around) < 2:
        return float("nan")
    spread = float(gain[around].std(ddof=1))
    apart = float(gain[mask].mean()) - float(gain[around].mean())
    return apart / spread if spread > 0 else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class MatchedParts:
    """The connected components of a pair of masks, and their overlaps.

    `pieces` is the number of predicted parts that share a voxel with each lesion of the reference.
    `found` says for each lesion whether there is any such part, and `true` says for each predicted
    part whether it shares a voxel with the reference.
    """

    measured: MeasuredPair
    pieces: NDArray[np.intp]
    found: NDArray[np.bool_]
    true: NDArray[np.bool_]


def match_parts(measured: MeasuredPair) -> MatchedParts:
    """Return the connected components of a pair of masks, and their overlaps."""
    own_parts, others = measured.lesions.meetings(measured.parts)
    pieces = np.bincount(own_parts, minlength=measured.lesions.n)
    true = np.bincount(others, minlength=measured.parts.n) > 0
    return MatchedParts(measured, pieces, pieces > 0, true)


def find_failures(
    both: MatchedParts,
    enhancement: Enhancement | None = None,
    thresholds: FailureThresholds = THRESHOLDS,
) -> tuple[Failure, ...]:
    """Return the failure kinds of a pair of masks, in the order of `FailureKind`.

    Without a reference lesion the result is empty, because the status of the case already reports
    this.
    """
    pair, grid = both.measured.pair, both.measured.grid
    if not both.measured.lesions.n:
        return ()
    failures = [
        *_find_missed(both, thresholds),
        *_wrong_breast(both, thresholds),
        *_far_parts(both, thresholds),
        *_find_size_errors(both, thresholds),
        *_find_fragmented(both, thresholds),
        *_find_small_tumour(both, thresholds),
    ]
    if enhancement is not None:
        failures += _low_contrast(pair, grid, enhancement, thresholds)
    return (*failures, *_find_border_touch(pair, grid))


def midline_x_mm(grid: Grid, thresholds: FailureThresholds = THRESHOLDS) -> float:
    """Return the x coordinate (RAS mm) of the patient's midline, or nan if undefined.

    The midline is the middle of the volume, so it is shifted if the image is not centred on the
    patient. The midline is undefined if the volume is narrower than `two_breasts_mm` from left to
    right, because it may then contain only one breast.
    """
    ends = np.array(np.meshgrid(*((-0.5, n - 0.5) for n in grid.shape), indexing="ij"))
    x = grid.to_world_mm(ends.reshape(3, -1).T)[:, 0]
    if x.max() - x.min() < thresholds.two_breasts_mm:
        return float("nan")
    return float((x.min() + x.max()) / 2)


def _find_missed(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    if not both.found.any():
        n_parts = both.measured.parts.n
        if not n_parts:
            return [Failure(FailureKind.MISSED, "nothing is predicted")]
        reason = (
            f"{count_of(n_parts, 'predicted part')}, but none shares a voxel with the reference"
        )
        return [Failure(FailureKind.MISSED, reason)]
    volumes = both.measured.lesions.voxels * both.measured.grid.voxel_volume_mm3
    counted = volumes >= thresholds.lesion_mm3
    missed = counted & ~both.found
    if not missed.any():
        return []
    reason = (
        f"{np.count_nonzero(missed)} of {count_of(int((counted | both.found).sum()), 'lesion')} "
        f"missed; the largest missed lesion has {volumes[missed].max():.0f} mm3"
    )
    return [Failure(FailureKind.LESION_MISSED, reason)]


def _wrong_breast(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    if both.found.any() or not both.measured.parts.n:
        return []
    midline = midline_x_mm(both.measured.grid, thresholds)
    pair = both.measured.pair
    expected = _centroid_x_mm(pair.reference, both) - midline
    got = _centroid_x_mm(pair.prediction, both) - midline
    if np.isnan(midline) or min(abs(expected), abs(got)) < thresholds.midline_mm:
        return []
    if (expected > 0) == (got > 0):
        return []
    reason = (
        f"the reference's centroid is {_describe_side(expected)} of the middle of the volume, "
        f"the prediction's {_describe_side(got)}"
    )
    return [Failure(FailureKind.WRONG_BREAST, reason)]


def _far_parts(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    false, measured = ~both.true, both.measured
    if not false.any():
        return []
    numbers = measured.parts.at(measured.contours.prediction)
    nearest = np.full(false.size, np.inf)
    np.minimum.at(nearest, numbers, measured.mm.prediction_to_reference)
    far = np.flatnonzero(false & (nearest >= thresholds.far_mm))
    if not far.size:
        return []
    volume = both.measured.parts.voxels[far].sum() * both.measured.grid.voxel_volume_mm3
    reason = (
        f"{count_of(far.size, 'predicted part')} with {volume:.0f} mm3 in total, up to "
        f"{nearest[far].max():.0f} mm from the reference"
    )
    return [Failure(FailureKind.FAR_FALSE_POSITIVE, reason)]


def _find_size_errors(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    if not both.found.any():
        return []
    reference, failures = both.measured.lesions.voxels.sum(), []
    ratio = both.measured.parts.voxels[both.true].sum() / reference
    if ratio >= thresholds.over_ratio:
        reason = f"the predicted parts that overlap the reference have {ratio:.1f} times its volume"
        failures.append(Failure(FailureKind.OVER_SEGMENTATION, reason))
    pair = both.measured.pair
    share = np.count_nonzero((pair.reference != 0) & (pair.prediction != 0)) / reference
    if share <= thresholds.under_share:
        reason = f"only {100 * share:.0f} % of the reference's volume is predicted"
        failures.append(Failure(FailureKind.UNDER_SEGMENTATION, reason))
    return failures


def _find_fragmented(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    most = both.pieces.max(initial=0)
    if most < thresholds.fragments:
        return []
    return [Failure(FailureKind.FRAGMENTED, f"one lesion is predicted as {most} separate parts")]


def _find_small_tumour(both: MatchedParts, thresholds: FailureThresholds) -> list[Failure]:
    volume = both.measured.lesions.voxels.sum() * both.measured.grid.voxel_volume_mm3
    if volume > thresholds.small_mm3:
        return []
    reason = f"the reference has {volume:.0f} mm3 (small: up to {thresholds.small_mm3:.0f} mm3)"
    return [Failure(FailureKind.SMALL_TUMOUR, reason)]


def _low_contrast(
    pair: MaskPair, grid: Grid, enhancement: Enhancement, thresholds: FailureThresholds
) -> list[Failure]:
    value = contrast_to_noise(
        pair.reference != 0, pair.box, grid, enhancement, thresholds.surroundings_mm
    )
    if not value <= thresholds.contrast_to_noise:
        return []
    reason = (
        f"the tumour enhances {value:.1f} SD more than the {thresholds.surroundings_mm:g} mm "
        "around it"
    )
    return [Failure(FailureKind.LOW_CONTRAST, reason)]


def _find_border_touch(pair: MaskPair, grid: Grid) -> list[Failure]:
    touching = [
        name
        for name, mask in (("reference", pair.reference), ("prediction", pair.prediction))
        if touched_axes(mask, pair.box, grid.shape)
    ]
    if not touching:
        return []
    sentence = f"the {' and the '.join(touching)} reach{'' if len(touching) > 1 else 'es'} "
    return [Failure(FailureKind.TOUCHES_BORDER, f"{sentence}the edge of the image")]


def _centroid_x_mm(mask: NDArray[Any], both: MatchedParts) -> float:
    places = np.argwhere(mask).mean(axis=0) + np.array(both.measured.pair.box.start)
    return float(both.measured.grid.to_world_mm(places)[0])


def _describe_side(x_mm: float) -> str:
    return f"{abs(x_mm):.0f} mm to the patient's {'right' if x_mm > 0 else 'left'}"
