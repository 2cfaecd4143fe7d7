"""Rules of each profile for groups of cases, including small, empty and undefined groups."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.cohort import MenopausalStatus
from napari_mamamia.core.plugins import Registry
from napari_mamamia.scoring.case.profiles import profile_named


class EmptyGroups(StrEnum):
    """How a group without any case affects a disparity."""

    LEFT_OUT = "left_out"
    AS_SCRIPTS = "as_scripts"
    """Task 1: an empty first group makes the disparity undefined, a later one is left out. Task 2:
    an
    empty group counts with TPR 0 and FPR 0.
    """


class UndefinedRate(StrEnum):
    """Treatment of the TPR of a group without responders, or the FPR without non-responders."""

    LEFT_OUT = "left_out"
    ZERO = "zero"
    """The rate counts as 0, and so does the TPR of a group in which all labels and predictions are
    1.
    """


class MissingLabel(StrEnum):
    """Treatment of a prediction for a case with unknown pCR."""

    LEFT_OUT = "left_out"
    NO_RESPONSE = "no_response"
    """The case counts as a non-responder in balanced accuracy, and is left out of the groups."""


@dataclass(frozen=True, slots=True)
class AgeGroup:
    """Ages from `low` to `high` years; `has_low` and `has_high` include the ends."""

    label: str
    low: float
    high: float
    has_low: bool
    has_high: bool

    def holds(self, age: float) -> bool:
        """Return whether an age in years lies in the group; nan does not."""
        above = self.low < age or (self.has_low and age == self.low)
        below = age < self.high or (self.has_high and age == self.high)
        return above and below


@dataclass(frozen=True, slots=True)
class GroupRules:
    """The definitions of a profile that concern the cohort, not a single case.

    `profile` is the name of the `Profile` that these rules belong to. `peri_is` and
    `missing_menopause_is` name the group of such cases; None leaves them unassigned.
    `disparity_limit` is the limit at which the mean equalised-odds disparity is clipped (None: no
    limit). If `scores_constant` is true, constant predictions of response are scored like any
    others. Groups under `min_group_size` cases are flagged, never dropped. `version` rises with
    each change of a number.
    """

    profile: str
    version: int
    source: str
    age_groups: tuple[AgeGroup, ...]
    menopause_groups: tuple[str, ...]
    peri_is: str | None
    missing_menopause_is: str | None
    empty_age_groups: EmptyGroups
    undefined_rate: UndefinedRate
    missing_label: MissingLabel
    disparity_limit: float | None
    min_group_size: int
    density_groups: tuple[str, ...] = ("a", "b", "c", "d")
    weight_of_fairness: float = 0.5
    scores_constant: bool = False

    def age_group(self, age: float) -> str | None:
        """Return the label of the group that contains an age in years, None if there is none."""
        return next((group.label for group in self.age_groups if group.holds(age)), None)

    def menopause_group(self, status: MenopausalStatus | None) -> str | None:
        """Return the group of a menopausal status (None: missing), or None without a group."""
        if status is None:
            return self.missing_menopause_is
        return self.peri_is if status is MenopausalStatus.PERI else status.value


_AGES_OF_SCRIPTS: Final = (
    AgeGroup("0-40", 0, 40, has_low=False, has_high=True),
    AgeGroup("41-50", 40, 50, has_low=False, has_high=True),
    AgeGroup("51-60", 50, 60, has_low=False, has_high=True),
    AgeGroup("61-70", 60, 70, has_low=False, has_high=True),
    AgeGroup("71+", 70, 100, has_low=False, has_high=True),
)

_AGES_OF_PAPER: Final = (
    AgeGroup("<40", -inf, 40, has_low=False, has_high=False),
    AgeGroup("41-50", 41, 50, has_low=True, has_high=True),
    AgeGroup("51-60", 51, 60, has_low=True, has_high=True),
    AgeGroup("61-70", 61, 70, has_low=True, has_high=True),
    AgeGroup(">71", 71, inf, has_low=False, has_high=False),
)

_GROUP_RULES: Final = (
    GroupRules(
        profile="clinical",
        version=1,
        source="our default: the scripts' age groups; undefined values stay undefined",
        age_groups=_AGES_OF_SCRIPTS,
        menopause_groups=("pre", "post"),
        peri_is="pre",
        missing_menopause_is=None,
        empty_age_groups=EmptyGroups.LEFT_OUT,
        undefined_rate=UndefinedRate.LEFT_OUT,
        missing_label=MissingLabel.LEFT_OUT,
        disparity_limit=1.0,
        min_group_size=10,
    ),
    GroupRules(
        profile="official-code",
        version=2,
        source="the definitions of the published scripts: LidiaGarrucho/MAMA-MIA, commit bfc321a4",
        age_groups=_AGES_OF_SCRIPTS,
        menopause_groups=("pre", "post", "unknown"),
        peri_is="pre",
        missing_menopause_is="unknown",
        empty_age_groups=EmptyGroups.AS_SCRIPTS,
        undefined_rate=UndefinedRate.ZERO,
        missing_label=MissingLabel.NO_RESPONSE,
        disparity_limit=1.0,
        min_group_size=0,
        scores_constant=True,
    ),
    GroupRules(
        profile="paper",
        version=1,
        source="the definitions of the challenge's paper: arXiv 2603.01250v2, Eq. 1 to 3a",
        age_groups=_AGES_OF_PAPER,
        menopause_groups=("pre", "post"),
        peri_is=None,
        missing_menopause_is=None,
        empty_age_groups=EmptyGroups.LEFT_OUT,
        undefined_rate=UndefinedRate.LEFT_OUT,
        missing_label=MissingLabel.LEFT_OUT,
        disparity_limit=None,
        min_group_size=0,
    ),
)

GROUP_RULES: Final = Registry(
    "napari_mamamia.group_rules",
    GroupRules,
    MappingProxyType({rules.profile: rules for rules in _GROUP_RULES}),
)
"""The rules by the name of their profile: the built-in ones, then those of installed packages."""


def rules_of(profile: str) -> GroupRules:
    """Return the rules of the profile with a name.

    A profile of an installed package that has no rules of its own uses those of `clinical`.

    Raises
    ------
    ValueError
        If there is no such profile; the message lists all names.
    """
    if profile in GROUP_RULES:
        return GROUP_RULES[profile]
    return replace(GROUP_RULES["clinical"], profile=profile_named(profile).name)
