"""Read the inputs of a ranking: one table per algorithm or for all, and resamples."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.names import name_some
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.ranking_tables import (
    SHARES,
    CaseColumns,
    read_case_columns,
    read_draws,
    read_value_tables,
)
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.named_paths import read_named_path
from napari_mamamia.io.tables.headers import spelled
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.scoring.case.profiles import CLINICAL, Profile
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases_job, rules_of
from napari_mamamia.scoring.cohort.policy import count_cases, is_unusable
from napari_mamamia.scoring.cohort.segmentation_cohort import ranking_scores_of_weights
from napari_mamamia.scoring.ranking.methods import Composite
from napari_mamamia.scoring.ranking.ranking import NamedDraws
from napari_mamamia.scoring.ranking.table import RankingTable, is_larger_better
from napari_mamamia.services.score.clinical_table import matched, read_table

_UNUSABLE = frozenset(status.value for status in ScoreStatus if is_unusable(status))
"""Values in the column ``status`` for cases whose score was assigned by a rule."""
_SCORED = ("dsc", "norm_hd")
"""The two columns from which the challenge's composite score is computed."""
_OTHER_UNIT: Final = 20
"""Ratio of medians at which different units are suspected (our choice)."""


@dataclass(frozen=True, slots=True)
class AlgorithmTable:
    """An algorithm's name and the table of its case scores."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class RankInputs:
    """The inputs of a ranking: either one table for each algorithm, or one table for all.

    Parameters
    ----------
    algorithms, table
        One table per algorithm, or one table for all algorithms.
    metrics
        Columns of the algorithms' tables to rank by; by default dsc, value, score, or the only one.
    larger_is_better
        Whether larger values are better. If None, this is inferred from the metric's name; for
        unknown names, larger is better. With several metrics, the setting applies only to metrics
        with unknown names.
    clinical, profile
        If each algorithm's table has dsc and norm_hd, a clinical table makes it possible to compute
        the challenge's composite score under the profile.
    """

    algorithms: tuple[AlgorithmTable, ...] = ()
    table: Path | None = None
    metrics: tuple[str, ...] = ()
    larger_is_better: bool | None = None
    draws: Path | None = None
    clinical: Path | None = None
    columns: ColumnChoice = BY_NAME
    profile: Profile = CLINICAL

    def __post_init__(self) -> None:
        if bool(self.algorithms) == (self.table is not None):
            raise ValueError(
                "expected tables of algorithms, or one table of all, but found "
                f"{'both' if self.algorithms else 'neither'}: pass one of them"
            )
        if self.table is not None and (self.metrics or self.clinical):
            raise ValueError(
                "a metric and a clinical table need one table per algorithm, but there is one "
                "table of all algorithms: add a column metric to that table, or pass one table "
                "per algorithm"
            )

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return the name and value of each input, for ``run.json``."""
        names = ", ".join(
            f"{algorithm.name}={algorithm.path.name}" for algorithm in self.algorithms
        )
        plain = (("algorithms", names), ("table", self.table), ("draws", self.draws))
        texts = [(name, getattr(value, "name", value) or None) for name, value in plain]
        return (
            *((name, str(value)) for name, value in texts if value),
            ("metrics", ", ".join(self.metrics) or None),
            ("larger_is_better", self.larger_is_better),
            ("clinical", self.clinical.name if self.clinical else None),
            ("profile", self.profile.name if self.clinical else None),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReadInputs:
    """The tables that were read; `keys` are the columns that split a file, `notes` are warnings.

    `group` assigns cases to groups of the clinical table; it is None if there is no such table.
    """

    tables: tuple[RankingTable, ...]
    keys: tuple[str, ...]
    draws: NamedDraws | None
    composite: Composite | None
    notes: tuple[str, ...]
    group: Callable[[Sequence[str]], tuple[Grouping, ...]] | None = None


def algorithm_table(text: str) -> AlgorithmTable:
    """Parse ``NAME=FILE`` or ``FILE``.

    The default name is the file's, or the folder's for the ``case_scores`` of a scoring run.

    Examples
    --------
    >>> algorithm_table("nnU-Net=a.csv").name, algorithm_table("out/A/case_scores.csv").name
    ('nnU-Net', 'A')
    """
    name, path = read_named_path(text)
    own_name = path.absolute().parent.name if path.stem == "case_scores" else path.stem
    return AlgorithmTable(name or own_name, path)


def read_inputs(inputs: RankInputs) -> ReadInputs:
    """Read all inputs of a ranking.

    Raises
    ------
    CaseError
        If two algorithms have the same name.
    FormatError
        If a file cannot be read or has unexpected content.
    """
    keys: tuple[str, ...]
    composite, group = None, None
    notes: list[str] = []
    if inputs.table is not None:
        read = read_value_tables(inputs.table)
        notes += read.notes
        keys, tables = (
            read.keys,
            [
                RankingTable(
                    table.algorithms,
                    table.cases,
                    table.values,
                    True,
                    table.task,
                    table.metric,
                    table.site,
                )
                for table in read.tables
            ],
        )
    else:
        tables, warnings = _read_algorithms(inputs)
        notes += warnings
        keys = ("metric",) if len(tables) > 1 else ()
        cohort = read_table(inputs.clinical, inputs.columns)
        if cohort is not None:
            group = partial(_group_cases, cohort, inputs.profile)
            composite, note = _make_composite(inputs, tables[0].cases, cohort)
            notes += [note] if note else []
    notes += [note for table in tables if (note := _compare_units(table))]
    tables, directions = _direct_tables(tables, inputs.larger_is_better)
    draws = None
    if inputs.draws is not None:
        draws = _spell_draws(read_draws(inputs.draws), tables)
    return ReadInputs(tuple(tables), keys, draws, composite, (*directions, *notes), group)


def _read_algorithms(inputs: RankInputs) -> tuple[list[RankingTable], list[str]]:
    """Read one table with all algorithms for each metric; also return warnings.

    A case that is in any file is included; letter case is ignored.
    """
    names = [algorithm.name for algorithm in inputs.algorithms]
    for name in names:
        if not name or names.count(name) > 1:
            raise CaseError(
                f"expected a different name for each algorithm, but found {', '.join(names)}: "
                "pass the tables as NAME=FILE"
            )
    read = [read_case_columns(algorithm.path, inputs.metrics) for algorithm in inputs.algorithms]
    if len({table_columns.columns for table_columns in read}) > 1:
        seen = "; ".join(
            f"{algorithm.path.name}: {', '.join(columns.columns)}"
            for algorithm, columns in zip(inputs.algorithms, read, strict=True)
        )
        raise FormatError(
            f"expected one metric in all tables, but found {seen}: choose the column",
            remedies=(Remedy("metric", ("COLUMN",)),),
        )
    profiles = dict.fromkeys(
        profile for table_columns in read for profile in table_columns.profiles
    )
    if len(profiles) > 1:
        raise FormatError(
            f"expected all scores to have the same profile, but found {', '.join(profiles)}: "
            "score all algorithms under one of them"
        )
    for source, columns in zip(inputs.algorithms, read, strict=True):
        if np.isnan(columns.values).all():
            raise FormatError(
                f"expected a value of {source.name} in {source.path} for at least one case, but "
                "found none: add its values, or leave the algorithm out"
            )
    spellings = _spell_cases(read)
    values = np.full((len(read[0].columns), len(spellings), len(read)), np.nan)
    is_given = np.ones(values.shape[1:], dtype=np.bool_)
    places = {case: index for index, case in enumerate(spellings)}
    for column, columns in enumerate(read):
        rows = [places[case_key(case)] for case in columns.cases]
        values[:, rows, column] = columns.values.T
        is_given[rows, column] = _find_given(columns)
    tables = [
        RankingTable(
            tuple(names), tuple(spellings.values()), values[index], metric=metric, given=is_given
        )
        for index, metric in enumerate(read[0].columns)
    ]
    return tables, [note for table_columns in read for note in table_columns.notes]


def _find_given(columns: CaseColumns) -> list[bool]:
    """Return whether each case's values come from the algorithm, not from a scoring rule."""
    statuses = columns.statuses or ("",) * len(columns.cases)
    return [status not in _UNUSABLE for status in statuses]


def _spell_cases(read: Sequence[CaseColumns]) -> dict[str, str]:
    """Return the spelling of each case id in the first file that contains it, by its key."""
    spelled: dict[str, str] = {}
    for columns in read:
        for case in columns.cases:
            spelled.setdefault(case_key(case), case)
    return spelled


def _compare_units(table: RankingTable) -> str:
    """Return a note if one algorithm's values may have a different unit from the others.

    Raises
    ------
    FormatError
        If the units certainly differ: values of one algorithm are outside a metric's range of 0 to
        1.
    """
    ranges = {
        name: column[np.isfinite(column)]
        for name, column in zip(table.algorithms, table.values.T, strict=True)
    }
    ranges = {name: values for name, values in ranges.items() if values.size}
    outside = [name for name, v in ranges.items() if v.min() < 0 or v.max() > 1]
    words = set(re.findall("[a-z]+", table.metric.casefold()))
    is_exact = spelled(table.metric) in SHARES
    if outside and words & SHARES and (is_exact or len(outside) < len(ranges)):
        values = ranges[outside[0]]
        raise FormatError(
            f"expected {table.metric} from 0 to 1, but the values of {name_some(outside, 3)} are "
            f"not ({outside[0]}: {values.min():g} to {values.max():g}): if they are percentages, "
            "divide them by 100"
        )
    medians = {name: float(np.median(values)) for name, values in ranges.items()}
    typical = {name: median for name, median in medians.items() if median > 0}
    if not typical:
        return ""
    low = min(typical, key=typical.__getitem__)
    high = [name for name, median in typical.items() if median > _OTHER_UNIT * typical[low]]
    if not high:
        return ""
    metric = f"{table.metric}: " if table.metric else ""
    return (
        f"{metric}the median of {name_some(high, 3)} ({typical[high[0]]:g}) is more than "
        f"{_OTHER_UNIT} times that of {low} ({typical[low]:g}): check that all have the same unit"
    )


def _direct_tables(
    tables: Sequence[RankingTable], larger_is_better: bool | None
) -> tuple[list[RankingTable], list[str]]:
    """Set each metric's direction (whether larger is better), and return notes on the choice."""
    metrics = dict.fromkeys(table.metric for table in tables)
    directions: dict[str, bool] = {}
    notes = []
    for metric in metrics:
        by_name = is_larger_better(metric)
        is_asked = larger_is_better is not None and (len(metrics) == 1 or by_name is None)
        chosen = larger_is_better if is_asked else by_name
        directions[metric] = True if chosen is None else chosen
        if is_asked and by_name is not None and by_name is not chosen:
            notes.append(
                f"{metric}is ranked with {'larger' if chosen else 'smaller'} as better, as set, "
                "although its name implies the contrary"
            )
    directed = [
        RankingTable(
            table.algorithms, table.cases, table.values, directions[table.metric],
            table.task, table.metric, table.site, table.given,
        )
        for table in tables
    ]  # fmt: skip
    return directed, notes


def _spell_draws(rows: Sequence[Sequence[str]], tables: Sequence[RankingTable]) -> NamedDraws:
    """Return resamples in which case ids are spelled as in the tables; unknown ids are kept."""
    spelled: Mapping[str, str] = {case_key(case): case for table in tables for case in table.cases}
    return NamedDraws(
        tuple(tuple(spelled.get(case_key(name), name) for name in row) for row in rows)
    )


def _group_cases(cohort: Cohort, profile: Profile, cases: Sequence[str]) -> tuple[Grouping, ...]:
    return group_cases_job(tuple(cases), matched(list(cases), cohort), rules_of(profile.name))


def _make_composite(
    inputs: RankInputs, cases: Sequence[str], cohort: Cohort
) -> tuple[Composite | None, str]:
    """Return the function for the challenge's score in resamples, or None and the reason.

    Cases without a usable prediction are scored by the profile's rule, as in `score`.
    """
    spelled = {case_key(case): case for case in cases}
    try:
        rows = [
            _read_rows(algorithm.path, inputs.profile, spelled) for algorithm in inputs.algorithms
        ]
    except FormatError as error:
        return None, f"no composite: {error}"
    rules = rules_of(inputs.profile.name)
    inside = matched(list(cases), cohort)
    models = []
    places = {case: index for index, case in enumerate(cases)}
    for own_rows in rows:
        counted = count_cases(own_rows, inputs.profile)
        groupings = group_cases_job(counted.case_ids, inside, rules) if counted.n else ()
        indices = np.array([places[case] for case in counted.case_ids], dtype=np.intp)
        models.append((counted, groupings, indices))

    def composite(weights: NDArray[np.int64]) -> NDArray[np.float64]:
        weight = rules.weight_of_fairness
        return np.stack(
            [
                ranking_scores_of_weights(counted, groupings, weight, weights[:, index])
                for counted, groupings, index in models
            ],
            axis=1,
        )

    return composite, ""


def _read_rows(path: Path, profile: Profile, spelled: Mapping[str, str]) -> list[CaseScore]:
    """Return one row per case, in order; a case that is missing in the table has no prediction."""
    read = read_case_columns(path, _SCORED)
    if read.profiles and read.profiles != (profile.name,):
        raise FormatError(
            f"expected scores under the profile {profile.name} in {path}, but found "
            f"{', '.join(read.profiles)}: choose that profile",
            remedies=(Remedy("profile", read.profiles),),
        )
    if read.profiles and path.suffix.lower() == ".csv":
        scored = {case_key(row.case_id): row for row in read_case_scores(path)}
    else:
        scored = {
            case_key(case): CaseScore(case, ScoreStatus.OK, dsc=dsc, norm_hd=norm_hd)
            for case, (dsc, norm_hd) in zip(read.cases, read.values.tolist(), strict=True)
        }
    absent = CaseScore("", ScoreStatus.PREDICTION_MISSING, profile=profile.name)
    return [replace(scored.get(key, absent), case_id=case) for key, case in spelled.items()]
