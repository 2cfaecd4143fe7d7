"""Profiles: the named, versioned sets of definitions that a score is computed under."""

from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import Final

from napari_mamamia.core.choices import UnusableRule


class Foreground(StrEnum):
    """Which values of a mask file are foreground."""

    CHOSEN_LABEL = "chosen_label"
    """The label that the user chose; else any value above 0, in soft masks at least 0.5."""
    MASK = "mask"
    """The value 1, in soft masks at least 0.5, and 255 where it is the only value; 2 is none."""
    ONE = "one"
    """The value 1 as it is stored, whatever the values mean: 255, 2 and 0.9 are background."""
    UINT8 = "uint8"
    """What is not 0 after conversion to uint8: 0.6 becomes 0, -1 becomes 255, 256 becomes 0. Other
    labels stay apart, so that the border between two labels is contour."""


class Distance(StrEnum):
    """The column of `CaseScore` that NormHD is made from; `metric(distance)` has its unit."""

    HAUSDORFF95_MM = "hausdorff95_mm"
    HAUSDORFF95_VOXELS = "hausdorff95_voxels"
    HAUSDORFF_MM = "hausdorff_mm"


class EmptinessOf(StrEnum):
    """What must be missing for a mask to count as empty in NormHD."""

    MASK = "mask"
    CONTOUR = "contour"
    """Of the contour in voxels: a mask that fills the image has none."""


class Emptiness(StrEnum):
    """How many of the two masks are empty."""

    NEITHER = "neither"
    ONE = "one"
    BOTH = "both"


class GridRule(StrEnum):
    """When two masks may be compared voxel by voxel."""

    SAME_PLACE = "same_place"
    """Equal shape, and affines that agree (`Grid.is_same_place`)."""
    SAME_SHAPE = "same_shape"
    """Equal shape; differing affines are only warned of."""


class MissingPrediction(StrEnum):
    """What becomes of a case without a prediction file."""

    SCORED_AS_EMPTY = "scored_as_empty"
    NOT_SCORED = "not_scored"


class UnusableReason(StrEnum):
    """Why a prediction cannot be scored, or has nothing to score."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    """Damaged, of another format, two files for one case, or a bad row of a table."""
    OTHER_GRID = "other_grid"
    NOT_FINITE = "not_finite"
    """NaN or infinity in a mask, or no number in a table."""
    EMPTY = "empty"
    """Nothing is marked where the reference has a tumour."""
    TOO_MANY_LABELS = "too_many_labels"
    NOT_SCORED = "not_scored"
    """Its time limit ended, or the worker that scored it was lost."""


@dataclass(frozen=True, slots=True)
class UnusableRules:
    """What a case without a usable prediction is worth under a profile.

    `empty_is_value` says that the profile's source defines an empty prediction: its Dice and NormHD
    count as any other case's, whatever `rule` says of the rest.
    """

    rule: UnusableRule = UnusableRule.LEAST_FAVOURABLE
    empty_is_value: bool = False

    def of(self, reason: UnusableReason, rule: UnusableRule | None = None) -> UnusableRule | None:
        """Return the rule for one reason, None where the case has a value; `rule` replaces ours."""
        if self.empty_is_value and reason is UnusableReason.EMPTY:
            return None
        return rule or self.rule


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that a per-case score depends on besides the two masks.

    `overlap_foreground` is for Dice and IoU, `distance_foreground` for distances and volumes.
    NormHD is the column `distance` over `divisor` (in that column's unit), cut to `norm_hd_limit`
    (None: not cut). `overlap_both_empty` is Dice and IoU of two empty masks (of one, both are 0 by
    their formulas). None means undefined: left out of means and counted. `version` rises with each
    change of a number. `source` names where the definitions come from. `unusable` says what a case
    is worth whose prediction cannot be used.
    `departures` says where the numbers leave the source, for the head of a report.
    """

    name: str
    version: int
    source: str
    grid_rule: GridRule
    overlap_foreground: Foreground
    distance_foreground: Foreground
    distance: Distance
    divisor: float
    norm_hd_limit: float | None
    emptiness_of: EmptinessOf
    overlap_both_empty: float | None
    norm_hd_both_empty: float | None
    norm_hd_one_empty: float
    missing_prediction: MissingPrediction
    unusable: UnusableRules = UnusableRules()
    departures: str = ""

    @property
    def takes_any_values(self) -> bool:
        """Whether values count as they are stored; else `core.case.foreground` says what is one."""
        return self.overlap_foreground is Foreground.ONE

    @property
    def worst_norm_hd(self) -> float:
        """NormHD of a case without a usable prediction at its worst, as of an empty one."""
        return self.norm_hd_one_empty if self.norm_hd_limit is None else self.norm_hd_limit

    def norm_hd(self, distance: float, emptiness: Emptiness) -> float:
        """Return the normalised distance of a case, 0 (best) upwards; nan where undefined.

        `distance` is the value of the column `distance`; it counts only where neither mask is
        empty, which is asked of `emptiness_of`.
        """
        if emptiness is Emptiness.BOTH:
            return _or_nan(self.norm_hd_both_empty)
        if emptiness is Emptiness.ONE:
            return self.norm_hd_one_empty
        normed = distance / self.divisor
        return normed if self.norm_hd_limit is None else min(normed, self.norm_hd_limit)

    def overlap(self, value: float) -> float:
        """Return Dice or IoU, with `overlap_both_empty` in the place of nan."""
        return _or_nan(self.overlap_both_empty) if isnan(value) else value


OFFICIAL_CODE: Final = Profile(
    name="official-code",
    version=3,
    source="what the published scripts compute: LidiaGarrucho/MAMA-MIA, commit bfc321a4",
    grid_rule=GridRule.SAME_SHAPE,
    overlap_foreground=Foreground.ONE,
    distance_foreground=Foreground.UINT8,
    distance=Distance.HAUSDORFF95_VOXELS,
    divisor=150.0,
    norm_hd_limit=None,
    emptiness_of=EmptinessOf.CONTOUR,
    overlap_both_empty=0.0,
    norm_hd_both_empty=0.0,
    norm_hd_one_empty=1.0,
    missing_prediction=MissingPrediction.NOT_SCORED,
    # The scripts stop at such a case, and NormHD has no worst value; an empty one they do define.
    unusable=UnusableRules(UnusableRule.REJECT, empty_is_value=True),
    departures=(
        "their fairness and ranking of Task 1 come out NaN (rows of metrics are appended and not "
        "joined), ours follow the formula that they state; they stop at a case without a usable "
        "prediction, here such a submission has no official number; a case that the clinical table "
        "lacks is in no group"
    ),
)

PAPER: Final = Profile(
    name="paper",
    version=3,
    source="what the challenge's paper says: arXiv 2603.01250v2",
    grid_rule=GridRule.SAME_PLACE,
    overlap_foreground=Foreground.MASK,
    distance_foreground=Foreground.MASK,
    distance=Distance.HAUSDORFF_MM,
    divisor=150.0,
    norm_hd_limit=1.0,
    emptiness_of=EmptinessOf.MASK,
    overlap_both_empty=0.0,
    norm_hd_both_empty=1.0,
    norm_hd_one_empty=1.0,
    missing_prediction=MissingPrediction.SCORED_AS_EMPTY,
)

CLINICAL: Final = Profile(
    name="clinical",
    version=3,
    source="our default: HD95 in mm, undefined stays undefined; divisor and limit as in the paper",
    grid_rule=GridRule.SAME_PLACE,
    overlap_foreground=Foreground.CHOSEN_LABEL,
    distance_foreground=Foreground.CHOSEN_LABEL,
    distance=Distance.HAUSDORFF95_MM,
    divisor=150.0,
    norm_hd_limit=1.0,
    emptiness_of=EmptinessOf.MASK,
    overlap_both_empty=None,
    norm_hd_both_empty=None,
    norm_hd_one_empty=1.0,
    missing_prediction=MissingPrediction.SCORED_AS_EMPTY,
)

PROFILES: Final = (CLINICAL, OFFICIAL_CODE, PAPER)
"""Every profile, the default first."""


def profile_named(name: str) -> Profile:
    """Return the profile of that name.

    Raises
    ------
    ValueError
        If there is none; the message lists them.
    """
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = ", ".join(profile.name for profile in PROFILES)
    raise ValueError(f"there is no profile named {name!r}; choose one of {names}")


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
