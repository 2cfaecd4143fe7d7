"""Failure kinds of a case, and the thresholds that define them."""

from dataclasses import dataclass
from enum import StrEnum
from math import pi
from typing import Final


class FailureKind(StrEnum):
    """Reason why a case failed or is hard; the value is the text that users read."""

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
        """Whether the kind only marks a hard case; a good prediction can have it as well."""
        return self in _CIRCUMSTANCES


_CIRCUMSTANCES: Final = (
    FailureKind.SMALL_TUMOUR,
    FailureKind.LOW_CONTRAST,
    FailureKind.TOUCHES_BORDER,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure kind of a case, with its reason as a sentence with numbers and units."""

    kind: FailureKind
    reason: str


@dataclass(frozen=True, slots=True)
class FailureThresholds:
    """Thresholds of the failure kinds; a value equal to a threshold belongs to the kind.

    Parameters
    ----------
    far_mm
        A predicted part without a shared voxel is far away from this distance on, measured to the
        nearest voxel of the reference. Our choice: farther than the outline errors of one tumour.
    over_ratio
        Volume of the predicted parts that share a voxel with the reference, divided by the
        reference's volume. Our choice: 2.
    under_share
        Share of the reference's volume that is predicted. Our choice: 0.5.
    fragments
        Number of predicted parts that share a voxel with the same lesion. Our choice: 3.
    lesion_mm3
        Smallest volume of a missed lesion that counts, if another lesion was found; smaller parts
        of
        a reference are specks of its outline. Our choice: a sphere of 5 mm diameter, the limit
        of T1a in the AJCC Cancer Staging Manual, 8th edition.
    small_mm3
        Largest volume of a small tumour: a sphere of 10 mm diameter, the limit of T1b in the
        same manual. The paper uses the cohort's 20th percentile, which can be given here.
    midline_mm
        A centroid this close to the midline has no side. Our choice.
    two_breasts_mm
        A volume narrower than this along the patient's left-right axis may hold only one breast,
        so that its middle is not the midline. Our choice: one-sided sagittal volumes are under 200
        mm
        wide, two-sided ones above 280 mm.
    contrast_to_noise
        Highest contrast-to-noise ratio of a tumour with low contrast: its mean enhancement minus
        that
        of its surroundings, in standard deviations of the surroundings. Our choice: 1.
    surroundings_mm
        Width of the shell around the reference that counts as its surroundings. Our choice.
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
"""Default thresholds of reports."""
