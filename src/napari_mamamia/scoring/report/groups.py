"""Tables of groups in a report: scored variables, strata, worst subgroups."""

from collections.abc import Sequence
from typing import Final

from napari_mamamia.metrics.registry import metric
from napari_mamamia.scoring.cohort.fairness import GroupScore, VariableFairness
from napari_mamamia.scoring.cohort.groups import Unassigned
from napari_mamamia.scoring.cohort.results import SegmentationResult, Stratum
from napari_mamamia.scoring.cohort.slices import SliceSearch
from napari_mamamia.scoring.cohort.strata import TAG
from napari_mamamia.scoring.report.gaps import say_disparity
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    p_text,
    variable_label,
)

IDS_LISTED: Final = 40


def group_tables(result: SegmentationResult) -> tuple[ReportTable, ...]:
    """Return one table for each scored variable."""
    return tuple(_variable_table(variable, result) for variable in result.cohort.fairness.variables)


def _variable_table(variable: VariableFairness, result: SegmentationResult) -> ReportTable:
    label, least = variable_label(variable.variable), result.uncertainty.minimum_group
    notes = [
        " ".join(say_disparity(result.uncertainty.of(variable.variable, measure), least))
        for measure in ("dsc", "norm_hd")
    ]
    # No sentence is based on a single patient.
    counted = [g for g in variable.groups if g.n >= least and g.mean_dsc == g.mean_dsc]
    if len(counted) > 1:
        worst = min(counted, key=lambda group: group.mean_dsc)
        notes.append(
            f"Worst group by Dice: {worst.label} ({number(worst.mean_dsc)}, n = {worst.n}); "
            f"variance over groups {number(variable.dsc.variance, 4)}."
        )
    if variable.reason:
        notes.append(f"Fairness is undefined: {variable.reason}.")
    return _groups_table(label, variable.groups, variable.unassigned, notes)


def stratum_table(stratum: Stratum) -> ReportTable:
    """Return the table of groups that are reported but not scored."""
    label = variable_label(stratum.variable)
    return _groups_table(label, stratum.groups, stratum.unassigned, [])


def _groups_table(
    label: str, groups: Sequence[GroupScore], unassigned: Sequence[Unassigned], notes: list[str]
) -> ReportTable:
    columns = ("n", "Mean Dice", "SD", "Mean NormHD", "SD")
    rows = tuple(
        Row(
            (
                group.label,
                f"{group.n}",
                number(group.mean_dsc),
                number(group.sd_dsc),
                number(group.mean_norm_hd),
                number(group.sd_norm_hd),
            ),
            group.is_small,
        )
        for group in groups
    )
    if any(group.is_small for group in groups):
        notes = [*notes, "Grey: fewer cases than the profile requires; included in the numbers."]
    headings = (Column("Group", is_number=False), *(Column(text) for text in columns))
    return ReportTable(label, headings, rows, tuple(notes), unassigned_lists(unassigned))


def unassigned_lists(unassigned: Sequence[Unassigned]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a heading with the number of cases and the first ids, for each reason."""
    by_reason: dict[str, list[str]] = {}
    for case in unassigned:
        by_reason.setdefault(case.reason, []).append(case.case_id)
    lists = []
    for reason, ids in by_reason.items():
        more = (f"and {len(ids) - IDS_LISTED} more",) if len(ids) > IDS_LISTED else ()
        heading = f"{len(ids)} unassigned: {reason}"
        lists.append((heading, (*ids[:IDS_LISTED], *more)))
    return tuple(lists)


def slice_table(search: SliceSearch) -> ReportTable:
    """Return the worst subgroups of one metric."""
    spec = metric(search.metric)
    name, better = spec.label, spec.better
    rows = tuple(
        Row(
            (
                " and ".join(f"{_shorten_variable(v)} {group}" for v, group in subgroup.conditions),
                f"{subgroup.n}",
                number(subgroup.mean),
                number(subgroup.mean_elsewhere),
                number(subgroup.statistic, 1),
                p_text(subgroup.p_value),
            ),
            subgroup.p_value > 0.05,
        )
        for subgroup in search.worst
    )
    headings = ("n", f"Mean {name}", "elsewhere", "SE worse", "p, corrected")
    notes = [search.reason[:1].upper() + search.reason[1:] + "."] if search.reason else []
    notes.append(
        f"{search.n_slices} subgroups of up to 3 columns with at least {search.min_support} of "
        f"{search.n_cases} cases; p corrected for the whole search by {search.n_permutations} "
        "permutations (maxT). Grey: not significant at 0.05."
    )
    return ReportTable(
        f"Worst subgroups by {name} ({better.value} is better)",
        (Column("Subgroup", is_number=False), *(Column(text) for text in headings)),
        rows,
        tuple(notes),
    )


def _shorten_variable(variable: str) -> str:
    if variable.startswith(TAG):
        return f"tag {variable.removeprefix(TAG)}"
    return {"volume": "size", "dataset": "centre"}.get(variable, variable.replace("_", " "))
