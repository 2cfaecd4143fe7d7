"""Profiles: named and versioned sets of definitions for computing scores."""

from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from types import MappingProxyType
from typing import Final

from napari_mamamia.core import open_choices
from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.plugins import Registry


class Foreground(StrEnum):
    """Rule that determines which values of a mask file count as foreground."""

    CHOSEN_LABEL = "chosen_label"
    """The label that the user chose, or otherwise any value above 0 (soft masks: at least 0.5)."""
    MASK = "mask"
    """The value 1 (soft masks: at least 0.5), or 255 if it is the only value; 2 is background."""
    ONE = "one"
    """Only the stored value 1; all other values, such as 255, 2 and 0.9, are background."""
    UINT8 = "uint8"
    """Any value that is not 0 after a cast to uint8.

    For example, 0.6 becomes 0, -1 becomes 255, and 256 becomes 0. Different labels stay separate,
    so the border between two labels is a contour.
    """


class Distance(StrEnum):
    """Name of the column of `CaseScore` from which NormHD is computed."""

    HAUSDORFF95_MM = "hausdorff95_mm"
    HAUSDORFF95_VOXELS = "hausdorff95_voxels"
    HAUSDORFF_MM = "hausdorff_mm"


class EmptinessOf(StrEnum):
    """The property whose absence makes a mask count as empty in NormHD."""

    MASK = "mask"
    CONTOUR = "contour"
    """The contour in voxels; a mask that fills the image has no contour."""


class Emptiness(StrEnum):
    """Number of empty masks in a pair: none, one or both."""

    NEITHER = "neither"
    ONE = "one"
    BOTH = "both"


class GridRule(StrEnum):
    """Condition under which two masks may be compared voxel by voxel."""

    SAME_PLACE = "same_place"
    """Equal shapes and matching affines (`Grid.is_same_place`)."""
    SAME_SHAPE = "same_shape"
    """Equal shapes; different affines only cause a warning."""


class MissingPrediction(StrEnum):
    """Treatment of a case without a prediction file."""

    SCORED_AS_EMPTY = "scored_as_empty"
    NOT_SCORED = "not_scored"


class UnusableReason(StrEnum):
    """Reason why a prediction cannot be scored or counts as empty."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    """The file is damaged, has another format or is ambiguous, or the table row is invalid."""
    OTHER_GRID = "other_grid"
    NOT_FINITE = "not_finite"
    """The mask contains NaN or infinity, or the table has no number for the case."""
    EMPTY = "empty"
    """The prediction is empty although the reference has a tumour."""
    TOO_MANY_LABELS = "too_many_labels"
    NOT_SCORED = "not_scored"
    """The time limit was reached, or the worker process ended."""


@dataclass(frozen=True, slots=True)
class UnusableRules:
    """Treatment of cases without a usable prediction under a profile.

    `empty_is_value` means that the profile's source defines scores for an empty prediction: its
    Dice and NormHD count as in any other case, regardless of the `rule` for other unusable
    predictions.
    """

    rule: UnusableRule = UnusableRule.LEAST_FAVOURABLE
    empty_is_value: bool = False

    def of(self, reason: UnusableReason, rule: UnusableRule | None = None) -> UnusableRule | None:
        """Return the rule for unusable cases with this reason, or None if such a case has a value.

        If `rule` is given, it replaces the rule of the profile.
        """
        if self.empty_is_value and reason is UnusableReason.EMPTY:
            return None
        return rule or self.rule


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything except the two masks that affects a case's score.

    `overlap_foreground` applies to Dice and IoU, and `distance_foreground` to distances and
    volumes. NormHD is the column `distance` divided by `divisor` (in the unit of that column) and
    clipped to `norm_hd_limit` (not clipped if None). `overlap_both_empty` is the Dice and IoU of
    two empty masks (with one empty mask, both are 0 by their formulas). None means undefined, so
    the case is left out of means and counted as excluded. `version` increases with each change of a
    number. `source` is the origin of the definitions. `unusable` defines the treatment of cases
    without a usable prediction. `departures` describes how the numbers differ from the source, for
    the head of a report.
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
    def chooses_label(self) -> bool:
        """Whether the user may choose which label is the tumour."""
        return self.distance_foreground is Foreground.CHOSEN_LABEL

    @property
    def takes_any_values(self) -> bool:
        """Whether stored values count, without interpretation by `core.case.foreground`."""
        return self.overlap_foreground is Foreground.ONE

    @property
    def worst_norm_hd(self) -> float:
        """The worst NormHD, for example of a case with an unusable prediction."""
        return self.norm_hd_one_empty if self.norm_hd_limit is None else self.norm_hd_limit

    def norm_hd(self, distance: float, emptiness: Emptiness) -> float:
        """Return the normalised distance of a case, from 0 (best) upwards, or nan if undefined.

        `distance` is the value of the column `distance`; it is used only if neither mask is empty
        as defined by `emptiness_of`.
        """
        if emptiness is Emptiness.BOTH:
            return _or_nan(self.norm_hd_both_empty)
        if emptiness is Emptiness.ONE:
            return self.norm_hd_one_empty
        normed = distance / self.divisor
        return normed if self.norm_hd_limit is None else min(normed, self.norm_hd_limit)

    def overlap(self, value: float) -> float:
        """Return Dice or IoU, with nan replaced by `overlap_both_empty`."""
        return _or_nan(self.overlap_both_empty) if isnan(value) else value


OFFICIAL_CODE: Final = Profile(
    name="official-code",
    version=3,
    source="the computations of the published scripts: LidiaGarrucho/MAMA-MIA, commit bfc321a4",
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
    # The scripts stop at such a case and NormHD has no worst value, but the scripts define the
    # value of an empty prediction.
    unusable=UnusableRules(UnusableRule.REJECT, empty_is_value=True),
    departures=(
        "in the scripts, fairness and ranking of Task 1 are NaN (rows of metrics are appended, "
        "not joined); here they follow the formula in the paper. The scripts stop at a case "
        "without a usable prediction; here such a submission has no official number. A case that "
        "is not in the clinical table belongs to no group"
    ),
)

PAPER: Final = Profile(
    name="paper",
    version=3,
    source="the definitions of the challenge's paper: arXiv 2603.01250v2",
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
    source=(
        "our default with HD95 in mm, undefined values that stay undefined, and the divisor "
        "and limit of the paper"
    ),
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

PROFILES: Final = Registry(
    open_choices.PROFILES.group,
    Profile,
    MappingProxyType({profile.name: profile for profile in (CLINICAL, OFFICIAL_CODE, PAPER)}),
)
"""All profiles by name: the default, other built-in profiles, then those of installed packages."""


def profile_named(name: str) -> Profile:
    """Return the profile with a name.

    Raises
    ------
    ValueError
        If there is no such profile. The message lists all names.
    """
    if name in PROFILES:
        return PROFILES[name]
    names = ", ".join(PROFILES)
    raise ValueError(
        f"expected one of the profiles {names}, but found {name!r}: choose one of them"
    )


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
