"""Sentences and tables on disparities: chance level, intervals, and groups left out."""

from collections.abc import Sequence
from typing import Final

from napari_mamamia.scoring.cohort.gap_records import (
    DisparityEstimate,
    GapInterval,
    GroupUncertainty,
    SmallGroup,
    is_of_groups,
)
from napari_mamamia.scoring.cohort.permutation import PermutationTest
from napari_mamamia.scoring.cohort.results import ResponseResult, SegmentationResult
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Column,
    ReportTable,
    Row,
    number,
    p_text,
    range_text,
    variable_label,
)
from napari_mamamia.scoring.statistics.bootstrap import Interval

Result = SegmentationResult | ResponseResult

RESAMPLING_RANGE: Final = (
    "Resampling range, as in the paper: the range of the number if the same cases are drawn "
    "again. Resampling shifts a disparity up and a fairness down, so this is not a confidence "
    "interval, and for a disparity it never contains 0."
)
BY_CONTRASTS: Final = (
    "95 % intervals of fairness, disparity and ranking score: from the contrasts of all pairs of "
    "groups with {least} cases or more. The value also counts smaller groups; an interval without "
    "the value is not shown."
)
PROFILE_WITH_RANGES: Final = "paper"
"""The only profile whose report shows resampling ranges.

For the other profiles, the ranges are only in summary.json.
"""

_MEASURES: Final = {
    "dsc": "Dice",
    "norm_hd": "NormHD",
    "tpr": "TPR",
    "fpr": "FPR",
    "equalised_odds": "Equalised-odds",
}
_MOST_NAMED: Final = 3
_ROUNDING: Final = 1e-12
_LEAST_SHOWN: Final = 0.001
_TWO_DECIMALS_FROM: Final = 0.095


def say_disparity(estimate: DisparityEstimate, minimum_group: int) -> tuple[str, ...]:
    """Return sentences on the conclusions that a disparity allows.

    Every sentence except the one on the scored value refers to groups of `minimum_group` cases or
    more.
    """
    name, interval = f"{_MEASURES[estimate.measure]} disparity", estimate.interval
    sentences = [f"{name} {_format_gap(estimate.value)}."]
    if estimate.value != estimate.value:
        return (f"{name} is undefined.",)
    if not interval.is_defined:
        return (*sentences, f"No interval: {interval.reason}.", *_say_left_out(interval))
    if not estimate.is_of_all:
        sentences = [
            f"{name} {_format_gap(estimate.value)} as scored, over all groups; "
            f"{_format_gap(estimate.counted)} between those of {minimum_group} cases or more."
        ]
    sentences.append(
        f"Chance alone gives {_format_gap(estimate.by_chance)} on average between groups of these "
        "sizes."
    )
    high, low = _format_gap(interval.high), _format_gap(interval.low)
    sentences.append(f"True disparity: between {low} and {high} (95 %).")
    small = interval.wide_because
    if interval.low > 0:
        wide = f"; the interval is {say_wide(small)}" if small else ""
        sentences.append(f"Groups differ by at least {low}{wide}.")
    else:
        who = f" (group {small.group}, {small.said})" if small else ""
        sentences.append(
            f"These data neither show a difference between groups nor exclude a gap of {high}{who}."
        )
    return (*sentences, *_say_left_out(interval))


def say_wide(small: SmallGroup) -> str:
    """Return a phrase that names the group which makes an interval wide."""
    return f"wide because of group {small.group} ({small.said})"


def interval_cell(interval: GapInterval) -> str:
    """Return a table cell with both ends of an interval; `say_beside` gives its notes."""
    return range_text(interval.low, interval.high)


def say_beside(interval: GapInterval) -> tuple[str, ...]:
    """Return the notes next to an interval: groups left out, and groups that make it wide."""
    left_out, wide = interval.left_out, interval.wide_because
    texts = []
    if left_out:
        names = ", ".join(f"{group.group} ({group.said})" for group in left_out[:_MOST_NAMED])
        more = len(left_out) - _MOST_NAMED
        what = "group" if len(left_out) == 1 else "groups"
        texts.append(f"without {what} {names}" + (f" and {more} more" if more > 0 else ""))
    return (*texts, *((say_wide(wide),) if wide else ()))


def say_without(uncertainty: GroupUncertainty) -> tuple[str, ...]:
    """Return a sentence on the variables that the fairness interval does not cover, and why."""
    fairness = uncertainty.fairness
    if not fairness.without or not fairness.is_defined:
        return ()
    names = ", ".join(variable_label(name) for name in fairness.without)
    return (f"The interval of the fairness does not cover {names}, where no gap has an interval.",)


def disparity_table(result: Result) -> ReportTable | None:
    """Return a table of all disparities with chance level and intervals, or None without groups."""
    uncertainty = result.uncertainty
    if not uncertainty.disparities:
        return None
    rows = tuple(_disparity_row(disparity, result) for disparity in uncertainty.disparities)
    headings = ("As scored", "Counted", "By chance", "Beyond", "95 % interval", "p, Holm")
    columns = (
        Column("Disparity", is_number=False),
        *(Column(text) for text in headings),
        Column("Groups left out, width", is_number=False),
    )
    least = uncertainty.minimum_group
    notes = (
        (
            f"As scored: over all groups. Other columns: over groups of {least} cases or more (for "
            "a rate: of its class). By chance: the mean gap of groups of these sizes that do not "
            "differ. Beyond chance: √(counted² − by chance²), at least 0."
        ),
        *say_tests(result.permutation_tests),
    )
    return ReportTable("Disparities (largest − smallest group)", columns, rows, notes)


def say_tests(tests: Sequence[PermutationTest]) -> tuple[str, ...]:
    """Return a sentence on the computation and correction of the p-values; () without a test."""
    defined = [test for test in tests if test.p_value == test.p_value]
    if not defined:
        return ()
    corrected = " and of ".join(
        str(n) for n in dict.fromkeys(t.n_corrected for t in tests if t.measure != "mean")
    )
    return (
        f"p: {defined[0].n_permutations} permutations of the groups' cases, corrected by Holm over "
        f"the disparities shown (families of {corrected}).",
    )


def range_table(result: Result) -> ReportTable | None:
    """Return the resampling ranges as in the paper, greyed; None if the profile has none."""
    if result.cohort.profile != PROFILE_WITH_RANGES:
        return None
    ranges = [(interval.name, interval) for interval in result.intervals if _is_range(interval)]
    rows = tuple(
        Row((_name_range(name), number(i.estimate), range_text(i.low, i.high)), is_small=True)
        for name, i in ranges
    )
    columns = (
        Column("Number", is_number=False),
        Column("Value"),
        Column("Resampling range"),
    )
    if not rows:
        return None
    return ReportTable("Resampling ranges (not intervals)", columns, rows, (RESAMPLING_RANGE,))


def _is_range(interval: Interval) -> bool:
    return is_of_groups(interval.name) and interval.low == interval.low


def _name_range(name: str) -> str:
    kind, _, rest = name.partition("_")
    measure = next((m for m in _MEASURES if rest.startswith(f"{m}_")), "")
    if measure:
        return f"{_MEASURES[measure]} disparity: {variable_label(rest.removeprefix(measure)[1:])}"
    if kind in ("fairness", "disparity") and rest:
        return f"{kind.capitalize()}: {variable_label(rest)}"
    return name.replace("_", " ").capitalize()


def _disparity_row(estimate: DisparityEstimate, result: Result) -> Row:
    test = find_test(result.permutation_tests, estimate.variable, estimate.measure)
    beside = [*say_beside(estimate.interval)]
    if not estimate.interval.is_defined:
        beside.insert(0, f"no interval: {estimate.interval.reason}")
    label = f"{variable_label(estimate.variable)}: {_MEASURES[estimate.measure]}"
    return Row(
        (
            label,
            number(estimate.value),
            number(estimate.counted),
            number(estimate.by_chance),
            number(estimate.beyond_chance),
            interval_cell(estimate.interval),
            p_text(test.p_holm) if test else UNKNOWN,
            ", ".join(beside) or "all counted",
        )
    )


def find_test(
    tests: Sequence[PermutationTest], variable: str, measure: str
) -> PermutationTest | None:
    """Return the permutation test of one disparity, None if there is none."""
    return next((t for t in tests if (t.variable, t.measure) == (variable, measure)), None)


def _say_left_out(interval: GapInterval) -> tuple[str, ...]:
    if not interval.left_out:
        return ()
    names = ", ".join(f"{group.group} ({group.said})" for group in interval.left_out)
    return (f"Left out because too small: {names}.",)


def _format_gap(value: float) -> str:
    """Return a gap with two decimals, three below 0.1, or "0"."""
    if value <= _ROUNDING:
        return "0"
    if value < _LEAST_SHOWN:
        return f"{value:.1g}"
    return number(value, 2 if value >= _TWO_DECIMALS_FROM else 3)
