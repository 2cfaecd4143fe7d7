"""Groups of cases as each profile defines them, and strata that are reported but not scored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.core.plugins import Registry
from napari_mamamia.core.progress import listening, paced, report_progress
from napari_mamamia.scoring.case.profiles import profile_named

FAIRNESS_VARIABLES: Final = ("age", "menopausal_status", "breast_density")
"""The scored variables, in the order of every table. Source: arXiv 2603.01250v2, Eq. 3a."""

UNASSIGNED: Final = -1
MOST_GROUPS: Final = 40
"""Largest number of different values of a column that forms groups.

A column with more values forms no groups, because it probably contains numbers or names.
"""

DIAMETER_CUTS_MM: Final = (20.0, 50.0)
"""Limits in mm between T1, T2 and T3. Source: AJCC Cancer Staging Manual, 8th edition, breast."""

VOLUME_PERCENTILES: Final = (20.0, 80.0)
"""Percentiles of the volume that separate small, moderate and large tumours.

Source: arXiv 2603.01250v2, figure of volumes.
"""

TAG: Final = "tag: "
"""Prefix of a variable that is a reader's tag, to distinguish tags from columns."""

Filled: TypeAlias = str | float | bool
"""The value of a cell that is not empty."""

_FIELDS: Final = ("dataset", "tumour_subtype", "pcr", "menopausal_status", "breast_density")


class EmptyGroups(StrEnum):
    """How a group without any case affects a disparity."""

    LEFT_OUT = "left_out"
    AS_SCRIPTS = "as_scripts"
    """Rule of the published scripts.

    In Task 1, an empty first group makes the disparity undefined, and a later empty group is left
    out. In Task 2, an empty group counts with TPR 0 and FPR 0.
    """


class UndefinedRate(StrEnum):
    """Treatment of the TPR of a group without responders, or the FPR without non-responders."""

    LEFT_OUT = "left_out"
    ZERO = "zero"
    """The rate counts as 0.

    So does the TPR of a group in which all labels and predictions are 1.
    """


class MissingLabel(StrEnum):
    """Treatment of a prediction for a case with unknown pCR."""

    LEFT_OUT = "left_out"
    NO_RESPONSE = "no_response"
    """The case counts as a non-responder in balanced accuracy, and is left out of the groups."""


@dataclass(frozen=True, slots=True)
class AgeGroup:
    """Ages from `low` to `high` years; `has_low` and `has_high` say whether ends are included."""

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
    """A profile's definitions that concern the cohort, not an individual case.

    `profile` is the name of the `Profile` to which these rules belong. `peri_is` and
    `missing_menopause_is` name the group of cases with a perimenopausal or missing status, or are
    None to leave these cases unassigned. `disparity_limit` is the limit to which the mean
    equalised-odds disparity is clipped, or None for no limit. If `scores_constant` is true,
    constant response predictions are scored like any others. Groups with fewer than
    `min_group_size` cases are flagged but never dropped. `version` increases with each change of a
    number.
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
        """Return the label of the group that contains an age in years, or None."""
        return next((group.label for group in self.age_groups if group.holds(age)), None)

    def menopause_group(self, status: MenopausalStatus | None) -> str | None:
        """Return the group of a menopausal status (None if missing), or None for no group."""
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
        source="our default with the scripts' age groups, in which undefined values stay undefined",
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
"""The rules by profile name: built-in rules, then those of installed packages."""


def rules_of(profile: str) -> GroupRules:
    """Return the rules of the profile with a name.

    A profile of an installed package without its own rules uses those of `clinical`.

    Raises
    ------
    ValueError
        If there is no such profile. The message lists all names.
    """
    if profile in GROUP_RULES:
        return GROUP_RULES[profile]
    return replace(GROUP_RULES["clinical"], profile=profile_named(profile).name)


@dataclass(frozen=True, slots=True)
class Unassigned:
    """The reason, as a sentence, why a case is in no group of a variable."""

    case_id: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of one variable over n cases.

    `labels` names every group, including empty groups. `codes`, (n,) intp, are the indices of the
    cases into `labels`, or -1 for a case in no group; `unassigned` explains why.
    """

    variable: str
    labels: tuple[str, ...]
    codes: NDArray[np.intp]
    unassigned: tuple[Unassigned, ...] = ()
    empty_groups: EmptyGroups = EmptyGroups.LEFT_OUT

    def __post_init__(self) -> None:
        codes = np.array(self.codes, dtype=np.intp)
        if codes.ndim != 1:
            raise ValueError(
                f"expected one code for each case of {self.variable}, but found an array of shape "
                f"{codes.shape}: pass a one-dimensional array"
            )
        if codes.size and not (codes.min() >= UNASSIGNED and codes.max() < len(self.labels)):
            raise ValueError(
                f"expected codes of {self.variable} from -1 to {len(self.labels) - 1} for "
                f"{len(self.labels)} groups, but found codes from {codes.min()} to {codes.max()}"
            )
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of cases in each group, (g,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))

    @property
    def indicator(self) -> NDArray[np.float64]:
        """Indicator array (n, g) float64: 1 if a case is in a group, otherwise 0."""
        members = self.codes[:, None] == np.arange(len(self.labels))
        return np.asarray(members, dtype=np.float64)


def group_cases(case_ids: Sequence[str], cohort: Cohort, rules: GroupRules) -> tuple[Grouping, ...]:
    """Return the groups by age, menopausal status and breast density (see `group_cases_job`)."""
    with listening(None):
        return group_cases_job(case_ids, cohort, rules)


def group_cases_job(
    case_ids: Sequence[str], cohort: Cohort, rules: GroupRules
) -> tuple[Grouping, ...]:
    """Return the groups by age, menopausal status and breast density, in this order.

    `case_ids` gives the order of the codes. A case without a row in the clinical table is
    unassigned in every variable, also under official-code, because the scripts never process such a
    case.
    """
    ages = tuple(group.label for group in rules.age_groups)
    empty = rules.empty_age_groups
    by_age = group_each("age", ages, case_ids, cohort, _age_rule(rules), empty)
    menopause, density = rules.menopause_groups, rules.density_groups
    by_menopause = group_each(
        "menopausal_status", menopause, case_ids, cohort, _menopause_rule(rules)
    )
    by_density = group_each("breast_density", density, case_ids, cohort, _density_rule(rules))
    return by_age, by_menopause, by_density


Found = str | Unassigned
"""The label of a case's group, or the reason why the case has no group."""


def group_each(
    variable: str,
    labels: Sequence[str],
    case_ids: Sequence[str],
    cohort: Cohort,
    rule: Callable[[CaseRecord], Found],
    empty_groups: EmptyGroups = EmptyGroups.LEFT_OUT,
) -> Grouping:
    """Return the groups that `rule` assigns from each case's row in the clinical table.

    `rule` returns one of `labels`, or `Unassigned` with the reason.
    """
    records = cohort.by_id()
    places = {label: index for index, label in enumerate(labels)}
    codes: list[int] = []
    unassigned: list[Unassigned] = []
    for case_id in paced(case_ids, f"Grouping cases by {variable}", len(case_ids)):
        record = records.get(case_id)
        group = rule(record) if record else Unassigned(case_id, "it is not in the clinical table")
        if isinstance(group, Unassigned):
            unassigned.append(group)
            codes.append(UNASSIGNED)
        else:
            codes.append(places[group])
    return Grouping(
        variable,
        tuple(labels),
        np.array(codes, dtype=np.intp),
        tuple(unassigned),
        empty_groups,
    )


def _age_rule(rules: GroupRules) -> Callable[[CaseRecord], Found]:
    def rule(record: CaseRecord) -> Found:
        if record.age is None:
            return Unassigned(record.case_id, "the age is missing")
        label = rules.age_group(record.age)
        if label is None:
            return Unassigned(
                record.case_id,
                f"age {record.age:g} is in no age group of the profile {rules.profile}",
            )
        return label

    return rule


def _menopause_rule(rules: GroupRules) -> Callable[[CaseRecord], Found]:
    def rule(record: CaseRecord) -> Found:
        status = record.menopausal_status
        label = rules.menopause_group(status)
        if label is not None:
            return label
        if status is None:
            return Unassigned(record.case_id, "the menopausal status is missing")
        return Unassigned(
            record.case_id,
            f"menopausal status {status.value} is in no group of the profile {rules.profile}",
        )

    return rule


def _density_rule(rules: GroupRules) -> Callable[[CaseRecord], Found]:
    def rule(record: CaseRecord) -> Found:
        density = record.breast_density
        if density is None:
            return Unassigned(record.case_id, "the breast density is missing")
        if density not in rules.density_groups:
            densities = ", ".join(rules.density_groups)
            return Unassigned(
                record.case_id, f"breast density {density!r} is not one of {densities}"
            )
        return density

    return rule


def group_by_column(case_ids: Sequence[str], cohort: Cohort, column: str) -> Grouping | None:
    """Return the groups by the values of a column of the clinical table, in order.

    `column` is a field of `CaseRecord` (dataset, tumour_subtype, pcr, ...) or the name of a further
    column. Cases with empty cells are unassigned. The result is None if no case has a value, or if
    there are more than `MOST_GROUPS` different values.
    """
    values = _collect_values(case_ids, cohort, column)
    if not 0 < len(values) <= MOST_GROUPS:
        return None
    return _group_by_values(case_ids, cohort, column, values)


def group_by_cuts(
    variable: str,
    case_ids: Sequence[str],
    values: NDArray[np.float64],
    cuts: Sequence[float],
    labels: Sequence[str],
) -> Grouping:
    """Group cases by a number between cuts; a value equal to a cut is in the lower group.

    `values` is (n,), in the order of `case_ids`; nan is unassigned. There is one more label than
    cuts.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(case_ids),) or len(labels) != len(cuts) + 1:
        raise ValueError(
            f"expected {len(case_ids)} values and {len(cuts) + 1} labels of {variable}, but found "
            f"values of shape {values.shape} and {len(labels)} labels"
        )
    missing = np.isnan(values)
    codes = np.where(missing, -1, np.searchsorted(np.asarray(cuts), values, side="left"))
    unassigned = tuple(
        Unassigned(case_id, f"{variable} is unknown")
        for case_id, is_missing in zip(case_ids, missing, strict=True)
        if is_missing
    )
    return Grouping(variable, tuple(labels), codes.astype(np.intp), unassigned)


def group_by_volume(case_ids: Sequence[str], volumes_mm3: NDArray[np.float64]) -> Grouping:
    """Return groups of small, moderate and large tumours by the volumes' 20th and 80th percentiles.

    The percentiles are those of the defined volumes, linearly interpolated.
    """
    volumes = np.asarray(volumes_mm3, dtype=np.float64)
    defined = volumes[~np.isnan(volumes)]
    cuts = np.percentile(defined, VOLUME_PERCENTILES) if defined.size else np.zeros(2)
    return group_by_cuts("volume", case_ids, volumes, tuple(cuts), ("small", "moderate", "large"))


def group_by_diameter(case_ids: Sequence[str], diameters_mm: NDArray[np.float64]) -> Grouping:
    """Return groups of tumours up to 20 mm, above 20 to 50 mm, and above 50 mm in diameter."""
    labels = ("up to 20 mm", "20 to 50 mm", "over 50 mm")
    return group_by_cuts("diameter", case_ids, diameters_mm, DIAMETER_CUTS_MM, labels)


def group_by_tags(case_ids: Sequence[str], tags: Sequence[Sequence[str]]) -> tuple[Grouping, ...]:
    """Return, for each tag, the cases with and without the tag; the most frequent tag comes first.

    `tags` holds the tags of each case, in the order of `case_ids`. A tag that every case has forms
    no groups.
    """
    counts: dict[str, int] = {}
    for case_tags in tags:
        for tag in set(case_tags):
            counts[tag] = counts.get(tag, 0) + 1
    names = sorted(
        (tag for tag, n in counts.items() if n < len(case_ids)), key=_make_rank_key(counts)
    )
    return tuple(
        Grouping(
            f"{TAG}{name}",
            ("with", "without"),
            np.array([name not in case_tags for case_tags in tags], dtype=np.intp),
        )
        for name in names[:MOST_GROUPS]
    )


def _collect_values(case_ids: Sequence[str], cohort: Cohort, column: str) -> dict[str, Filled]:
    ids = set(case_ids)
    values: dict[str, Filled] = {}
    for record in paced(cohort.records, f"Groups of {column}"):
        if record.case_id in ids:
            cell = _read_cell(record, column)
            if cell is not None:
                values[_format_cell(cell)] = cell
    report_progress(0, 1, f"Groups of {column}")
    return values


def _group_by_values(
    case_ids: Sequence[str], cohort: Cohort, column: str, values: Mapping[str, Filled]
) -> Grouping:
    labels = sorted(values, key=lambda text: _make_sort_key(values[text]))

    def rule(record: CaseRecord) -> Found:
        cell = _read_cell(record, column)
        return (
            Unassigned(record.case_id, f"{column} is missing")
            if cell is None
            else _format_cell(cell)
        )

    return group_each(column, labels, case_ids, cohort, rule)


def _make_rank_key(counts: Mapping[str, int]) -> Callable[[str], tuple[int, str]]:
    return lambda tag: (-counts[tag], tag)


def _read_cell(record: CaseRecord, column: str) -> Filled | None:
    cell: Any = getattr(record, column) if column in _FIELDS else record.other.get(column)
    is_nan = isinstance(cell, float) and np.isnan(cell)
    return None if cell is None or cell == "" or is_nan else cell


def _format_cell(cell: Filled) -> str:
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else f"{cell:g}"


def _make_sort_key(cell: Filled) -> tuple[bool, float, str]:
    if isinstance(cell, str):
        return True, 0.0, cell.lower()
    return False, float(cell), ""
