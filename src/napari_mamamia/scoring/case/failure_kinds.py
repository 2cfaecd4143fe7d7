"""The kinds of failure, and the bounds from which one is called by its name."""

from dataclasses import dataclass
from enum import StrEnum
from math import pi
from typing import Final


class FailureKind(StrEnum):
    """What went wrong with a case, or made it hard; the value is what the user reads."""

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
        """Whether it only says what makes the case hard: a good prediction can have it too."""
        return self in _CIRCUMSTANCES


_CIRCUMSTANCES: Final = (
    FailureKind.SMALL_TUMOUR,
    FailureKind.LOW_CONTRAST,
    FailureKind.TOUCHES_BORDER,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One kind of failure of one case, and the reason in plain words with numbers and units."""

    kind: FailureKind
    reason: str


@dataclass(frozen=True, slots=True)
class FailureThresholds:
    """Bounds of the failure kinds; a value at the bound belongs to the kind.

    Parameters
    ----------
    far_mm
        A predicted part without a shared voxel is far away from this distance on, measured to the
        nearest voxel of the reference. Our choice: beyond the rim of any one tumour's outline.
    over_ratio
        Volume of the predicted parts that share a voxel with the reference, over the reference's
        volume. Our choice: twice the volume.
    under_share
        Share of the reference's volume that is predicted. Our choice: half.
    fragments
        Predicted parts that share a voxel with one and the same lesion. Our choice: 3.
    lesion_mm3
        A missed lesion beside a found one counts from this volume on; smaller parts of a
        reference are specks of its outline. Our choice: a sphere of 5 mm diameter, the bound
        of T1a in the AJCC Cancer Staging Manual, 8th edition.
    small_mm3
        A tumour is small up to this volume: a sphere of 10 mm diameter, the bound of T1b in the
        same manual. The paper's own bound, the cohort's 20th percentile, can be put here.
    midline_mm
        A centroid this close to the midline is on no side. Our choice.
    two_breasts_mm
        A volume narrower than this along the patient's left-right axis may hold one breast only,
        and its middle is no midline. Our choice: one-sided sagittal volumes are under 200 mm wide,
        two-sided ones above 280 mm.
    contrast_to_noise
        A tumour has low contrast up to this value: its mean enhancement above that of its
        surroundings, in standard deviations of the surroundings. Our choice: 1.
    surroundings_mm
        The surroundings are a shell of this width around the reference. Our choice.
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
"""The bounds that reports use unless told otherwise."""
