"""Group cases by age, menopausal status and breast density, as a profile defines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.progress import listening, paced
from napari_mamamia.scoring.cohort.group_rules import EmptyGroups, GroupRules

FAIRNESS_VARIABLES: Final = ("age", "menopausal_status", "breast_density")
"""The scored variables, in the order of every table. Source: arXiv 2603.01250v2, Eq. 3a."""

UNASSIGNED: Final = -1


@dataclass(frozen=True, slots=True)
class Unassigned:
    """The reason, as a sentence, why a case is in no group of a variable."""

    case_id: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of one variable over n cases.

    `labels` names every group, including empty ones. `codes`, (n,) intp, holds each case's index
    into `labels`, or -1 if it is in no group; `unassigned` says why.
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
                f"expected one code for each case of {self.variable}, got an array of shape "
                f"{codes.shape}: pass a one-dimensional array"
            )
        if codes.size and not (codes.min() >= UNASSIGNED and codes.max() < len(self.labels)):
            raise ValueError(
                f"expected codes of {self.variable} from -1 to {len(self.labels) - 1} for "
                f"{len(self.labels)} groups, got codes from {codes.min()} to {codes.max()}"
            )
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of cases in each group, (g,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))

    @property
    def indicator(self) -> NDArray[np.float64]:
        """1 where a case is in a group, otherwise 0; (n, g) float64."""
        members = self.codes[:, None] == np.arange(len(self.labels))
        return np.asarray(members, dtype=np.float64)


def group_cases(case_ids: Sequence[str], cohort: Cohort, rules: GroupRules) -> tuple[Grouping, ...]:
    """Return the groups by age, menopausal status and breast density; see `group_cases_job`."""
    with listening(None):
        return group_cases_job(case_ids, cohort, rules)


def group_cases_job(
    case_ids: Sequence[str], cohort: Cohort, rules: GroupRules
) -> tuple[Grouping, ...]:
    """Return the groups by age, menopausal status and breast density, in this order.

    `case_ids` gives the order of the codes. A case without a row in the clinical table is
    unassigned in every variable, also under official-code: the scripts never see such a case.
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
