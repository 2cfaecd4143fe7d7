"""The profile `strict`: as `clinical`, but a case without a usable prediction has Dice 0."""

from dataclasses import replace

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.scoring.case.profiles import CLINICAL, UnusableRules
from napari_mamamia.scoring.cohort.groups import rules_of

STRICT = replace(
    CLINICAL,
    name="strict",
    version=1,
    source="an example: clinical, but an unusable prediction has the worst score",
    unusable=UnusableRules(UnusableRule.WORST_SCORE),
)
STRICT_GROUPS = replace(rules_of("clinical"), profile="strict", version=1, min_group_size=2)
