"""Assign values to cases without a usable prediction, so that ranking uses the lowest results.

Every *free* case gets the value between worst and best that makes the ranking score lowest
(`scoring.cohort.lowest.complete_cases`); performance and fairness are computed from the same
values. Thus damaging, dropping or moving cases never raises a score, not even a composite score
with fairness.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.names import count_of
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.scoring.case.profiles import Profile, UnusableReason
from napari_mamamia.scoring.statistics.performance import SegmentationScores

_REASONS: Final = MappingProxyType(
    {
        ScoreStatus.PREDICTION_MISSING: UnusableReason.MISSING,
        ScoreStatus.UNREADABLE: UnusableReason.UNREADABLE,
        ScoreStatus.SEVERAL_FILES: UnusableReason.UNREADABLE,
        ScoreStatus.GRID_MISMATCH: UnusableReason.OTHER_GRID,
        ScoreStatus.NOT_FINITE: UnusableReason.NOT_FINITE,
        ScoreStatus.PREDICTION_EMPTY: UnusableReason.EMPTY,
        ScoreStatus.TOO_MANY_LABELS: UnusableReason.TOO_MANY_LABELS,
        ScoreStatus.TIME_LIMIT: UnusableReason.NOT_SCORED,
        ScoreStatus.WORKER_LOST: UnusableReason.NOT_SCORED,
    }
)

WITHOUT_REFERENCE: Final = (ScoreStatus.REFERENCE_MISSING, ScoreStatus.REFERENCE_UNREADABLE)
"""Statuses of cases without a reference, which are not counted for any model."""


@dataclass(frozen=True, slots=True)
class UnusableCase:
    """A case without a usable prediction, with the reason and the rule that defines its value."""

    case_id: str
    reason: UnusableReason
    rule: UnusableRule


@dataclass(frozen=True, slots=True, eq=False)
class CountedCases:
    """All cases included in the score, sorted by id, with or without a usable prediction.

    `dsc` and `norm_hd` (n,) are the measured values, or nan if a case has no value. A case that is
    marked as free for either of them, (n,) bool, may have any value from 0 to 1, or from 0 to
    `worst_norm_hd`. `optional` cases might also be left out of the means, because their reference
    is empty and the profile leaves two empty masks undefined. `unusable` lists the cases without a
    usable prediction, and `left_out` the unusable cases that do not count. `rejected` explains why
    the submission has no ranked number, or is "".
    """

    case_ids: tuple[str, ...]
    dsc: NDArray[np.float64]
    norm_hd: NDArray[np.float64]
    free_dsc: NDArray[np.bool_]
    free_norm_hd: NDArray[np.bool_]
    optional: NDArray[np.bool_]
    worst_norm_hd: float = 1.0
    unusable: tuple[UnusableCase, ...] = ()
    left_out: tuple[str, ...] = ()
    rejected: str = ""

    @property
    def n(self) -> int:
        """The number of cases included in the score."""
        return len(self.case_ids)

    @property
    def has_free(self) -> bool:
        """Whether a ranked metric is a bound, because some case has a free value."""
        return bool(self.free_dsc.any() or self.free_norm_hd.any())

    @property
    def n_by_reason(self) -> dict[UnusableReason, int]:
        """The number of unusable cases for each reason."""
        return dict(Counter(case.reason for case in self.unusable))


def is_unusable(status: ScoreStatus) -> bool:
    """Return whether a case with this status has no usable prediction."""
    return status in _REASONS


def unusable_reason(row: CaseScore) -> UnusableReason | None:
    """Return why a case has no usable prediction, or None if it has one."""
    return _REASONS.get(row.status)


def count_cases(
    rows: Sequence[CaseScore], profile: Profile, rule: UnusableRule | None = None
) -> CountedCases:
    """Return the cases included in the score, from scored rows.

    `rule` replaces the profile's rules. An empty prediction with a value under the profile counts
    like any other case. Cases without a reference and cases that the profile leaves undefined (both
    masks empty) are skipped. An ok row without a number counts as not finite.

    Raises
    ------
    ValueError
        If `rule` needs a worst value, which `profile` does not have.
    """
    require_rule(profile, rule)
    cases: list[tuple[CaseScore, float, float, bool]] = []
    unusable: list[UnusableCase] = []
    has_distances = _has_distances(rows)
    for row in rows:
        reason = _find_reason(row, has_distances)
        case_rule = profile.unusable.of(reason, rule) if reason else None
        if reason and case_rule:
            unusable.append(UnusableCase(row.case_id, reason, case_rule))
        if case_rule is UnusableRule.WORST_SCORE:
            cases.append((row, 0.0, profile.worst_norm_hd, False))
        elif case_rule is UnusableRule.LEAST_FAVOURABLE:
            cases.append((row, row.dsc, row.norm_hd, True))
        elif case_rule is None and _is_counted(row):
            cases.append((row, row.dsc, row.norm_hd, False))
    return _collect_cases(cases, profile, has_distances, unusable)


def _find_reason(row: CaseScore, has_distances: bool) -> UnusableReason | None:
    lacks = np.isnan(row.dsc) or (has_distances and np.isnan(row.norm_hd))
    if row.status is ScoreStatus.OK and lacks:
        return UnusableReason.NOT_FINITE
    return unusable_reason(row)


def _is_counted(row: CaseScore) -> bool:
    has_number = not (np.isnan(row.dsc) and np.isnan(row.norm_hd))
    return has_number and row.status not in WITHOUT_REFERENCE


def every_case(scores: SegmentationScores) -> CountedCases:
    """Wrap scored cases as `CountedCases`, treating every case as usable."""
    nobody = np.zeros(len(scores.case_ids), dtype=np.bool_)
    columns = scores.dsc, scores.norm_hd
    return CountedCases(scores.case_ids, *columns, nobody, nobody, nobody)


def _has_distances(rows: Sequence[CaseScore]) -> bool:
    scored = [row.norm_hd for row in rows if not np.isnan(row.dsc)]
    return not scored or not all(np.isnan(value) for value in scored)


def _collect_cases(
    cases: Sequence[tuple[CaseScore, float, float, bool]],
    profile: Profile,
    has_distances: bool,
    unusable: Sequence[UnusableCase],
) -> CountedCases:
    free = np.array([is_free for *_, is_free in cases], dtype=np.bool_)
    dsc = np.array([value for _, value, _, _ in cases], dtype=np.float64)
    norm_hd = np.array([value for _, _, value, _ in cases], dtype=np.float64)
    no_tumour = np.array([row.volume_reference_mm3 == 0 for row, *_ in cases], dtype=np.bool_)
    # A row with only one of the numbers is free in the other number.
    is_row = np.array([row.status is ScoreStatus.OK for row, *_ in cases], dtype=np.bool_)
    return CountedCases(
        tuple(row.case_id for row, *_ in cases),
        dsc,
        norm_hd,
        free & (~is_row | np.isnan(dsc)),
        free & (~is_row | np.isnan(norm_hd)) & has_distances,
        free & no_tumour & (profile.overlap_both_empty is None),
        profile.worst_norm_hd,
        tuple(unusable),
        tuple(case.case_id for case in unusable if case.rule is UnusableRule.LEAVE_OUT),
        _explain_rejection(unusable, profile, norm_hd),
    )


SAID: Final = MappingProxyType(
    {
        UnusableReason.MISSING: "missing",
        UnusableReason.UNREADABLE: "unreadable",
        UnusableReason.OTHER_GRID: "on another grid",
        UnusableReason.NOT_FINITE: "not finite",
        UnusableReason.EMPTY: "empty",
        UnusableReason.TOO_MANY_LABELS: "with too many labels",
        UnusableReason.NOT_SCORED: "not scored (time limit, or its process ended)",
    }
)
"""Phrase that describes each reason why a case has no usable prediction."""

_WORTH: Final = MappingProxyType(
    {
        UnusableRule.LEAST_FAVOURABLE: (
            "scored with the values that make the ranking score lowest; performance and fairness "
            "use these values"
        ),
        UnusableRule.WORST_SCORE: "scored with the worst values",
        UnusableRule.LEAVE_OUT: "left out",
        UnusableRule.REJECT: "the submission is rejected",
    }
)


def not_for_ranking(cases: CountedCases) -> str:
    """Return a sentence for the top of a report if cases are left out, otherwise ""."""
    n = len(cases.left_out)
    return f"NOT FOR RANKING: {n} of {cases.n + n} cases are left out" if n else ""


def counted_lines(cases: CountedCases) -> tuple[str, ...]:
    """Return sentences about the cases without a usable prediction and how they are counted."""
    if cases.rejected and not any(case.rule is UnusableRule.REJECT for case in cases.unusable):
        return (cases.rejected,)
    lines = []
    for rule in UnusableRule:
        reasons = Counter(case.reason for case in cases.unusable if case.rule is rule)
        if reasons:
            listed = ", ".join(f"{n} {SAID[reason]}" for reason, n in reasons.items())
            n_of_rule = sum(reasons.values())
            lines.append(
                f"{count_of(n_of_rule, 'case')} without a usable prediction ({listed}): "
                f"{_WORTH[rule]}"
            )
    return (*lines, *((cases.rejected,) if cases.rejected else ()))


def require_rule(profile: Profile, rule: UnusableRule | None) -> None:
    """Raise ValueError if a profile does not allow a rule for unusable cases."""
    asks_for_worst = rule in (UnusableRule.LEAST_FAVOURABLE, UnusableRule.WORST_SCORE)
    if asks_for_worst and profile.norm_hd_limit is None:
        raise ValueError(
            f"the profile {profile.name} does not clip NormHD and therefore has no worst value "
            f"for the rule {rule}; choose the rule reject or leave-out, or another profile"
        )


def _explain_rejection(
    unusable: Sequence[UnusableCase], profile: Profile, norm_hd: NDArray[np.float64]
) -> str:
    if rejected := [case for case in unusable if case.rule is UnusableRule.REJECT]:
        named = ", ".join(f"{case.case_id} {SAID[case.reason]}" for case in rejected)
        return (
            f"rejected by the rule of the profile {profile.name}: "
            f"{count_of(len(rejected), 'case')} without a usable prediction ({named})"
        )
    counted = [case for case in unusable if case.rule is not UnusableRule.LEAVE_OUT]
    above = bool((norm_hd > profile.worst_norm_hd).any())
    if counted and above and profile.norm_hd_limit is not None:
        return (
            f"rejected: a NormHD exceeds {profile.worst_norm_hd:g}, the worst value of the "
            f"profile {profile.name}, so {count_of(len(counted), 'case')} without a value cannot "
            "get a worst value"
        )
    return ""
