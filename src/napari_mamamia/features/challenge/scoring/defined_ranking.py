"""Combine case values into measures, and rank teams as a challenge definition specifies."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial, reduce
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import MissingKind, RankTies
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.challenge.io.definition import (
    Average,
    Better,
    ChallengeDefinition,
    Measure,
    MissingAnswer,
    RankBy,
)
from napari_mamamia.features.challenge.scoring.sites import rank_sites
from napari_mamamia.scoring.ranking.methods import (
    rank_cases,
    rank_scores,
    weighted_mean,
    weighted_quantile,
)
from napari_mamamia.scoring.ranking.ranking import Stability, seeded_weights, stability_of
from napari_mamamia.scoring.ranking.table import (
    MissingRule,
    RankingTable,
    RankSettings,
    fill_missing,
)

_FLOAT = NDArray[np.float64]


class ValueState(StrEnum):
    """Whether a case has a value for a measure, and why not if it has none."""

    OK = "ok"
    NOT_DEFINED = "not defined"
    """The measure has no value because of the answer, such as an empty mask."""
    NO_TRUTH = "no truth"
    """The measure has no value because of the truth; the case counts for no team."""
    FAILED = "failed"
    """The answer is missing, cannot be read, or does not fit the truth."""


@dataclass(frozen=True, slots=True)
class CaseValue:
    """A measure's rows for one case, and the worst possible rows (() if the measure has none)."""

    case_id: str
    rows: tuple[tuple[float, ...], ...] = ()
    worst: tuple[tuple[float, ...], ...] = ()
    state: ValueState = ValueState.OK
    reason: str = ""

    @property
    def is_usable(self) -> bool:
        """Return whether there are rows and all their numbers are finite."""
        return self.state is ValueState.OK and bool(np.isfinite(self.rows).all())


@dataclass(frozen=True, slots=True)
class MeasuredCases:
    """A measure's values for all cases; `problem` says why the measure was not computed."""

    id: str
    values: tuple[CaseValue, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class MeasureRule:
    """A measure of a definition; `of_rows` combines all rows, and None means to average."""

    measure: Measure
    of_rows: Callable[[_FLOAT], float] | None = None
    is_resampled: bool = True

    @property
    def sign(self) -> float:
        """Return 1 if larger values are better, otherwise -1."""
        return 1.0 if self.measure.better is Better.HIGH else -1.0


def count_values(
    cases: Sequence[CaseValue], missing: MissingAnswer, sign: float
) -> list[_FLOAT | None] | None:
    """Return the rows of each case, after treating missing answers as the definition specifies.

    A case that does not count has None instead of rows. The whole result is None if the team has no
    number. If missing answers get the worst value, all other values are limited to it.

    Parameters
    ----------
    cases
        The values of all cases.
    missing
        How cases without a usable answer are treated.
    sign
        1 if larger values are better, otherwise -1.
    """
    counted: list[_FLOAT | None] = []
    for case in cases:
        rows = np.array(case.rows, dtype=np.float64)
        worst = np.array(case.worst, dtype=np.float64)
        if case.state is ValueState.NO_TRUTH:
            counted.append(None)
        elif missing is MissingAnswer.LEAVE_OUT:
            if case.state is ValueState.FAILED and case.reason:
                return None
            counted.append(rows if case.state is ValueState.OK else None)
        elif case.is_usable:
            is_limited = worst.shape == rows.shape == (1, 1) and missing is MissingAnswer.WORST
            counted.append(sign * np.maximum(sign * rows, sign * worst) if is_limited else rows)
        elif missing is MissingAnswer.WORST and worst.size:
            counted.append(worst)
        else:
            return None
    return counted


def measure_team(
    rule: MeasureRule, cases: Sequence[CaseValue], definition: ChallengeDefinition
) -> Callable[[NDArray[np.int64]], _FLOAT]:
    """Return a function from case weights, shape (b, n), to the team's measure, shape (b,)."""
    counted = count_values(cases, definition.missing, rule.sign)
    if counted is None or all(rows is None for rows in counted):
        return lambda weights: np.full(len(weights), np.nan)
    if rule.of_rows is not None:
        worst, is_worst = rule.measure.worst, definition.missing is MissingAnswer.WORST
        lacks = any(not case.is_usable and case.state is not ValueState.NO_TRUTH for case in cases)
        if worst is not None and is_worst and lacks:
            return lambda weights: np.full(len(weights), worst)
        return partial(_reduce_rows, rule, [np.zeros((0, 1)) if rows is None else rows
                                            for rows in counted])  # fmt: skip
    there = np.array([rows is not None for rows in counted])
    values = np.array([np.nan if rows is None else rows[0, 0] for rows in counted])[there]
    if not np.isfinite(values).all():
        return lambda weights: np.full(len(weights), values.mean())
    average = (
        weighted_mean if definition.average is Average.MEAN
        else partial(weighted_quantile, share=0.5)
    )  # fmt: skip
    return lambda weights: _average_drawn(average, weights[:, there], values[:, None])


def _average_drawn(
    average: Callable[..., _FLOAT], weights: NDArray[np.int64], values: _FLOAT
) -> _FLOAT:
    """Return weighted averages, shape (b,); NaN if all weights of a resample are 0."""
    with np.errstate(invalid="ignore"):
        averages = average(weights, values)[:, 0]
    return np.where(weights.sum(axis=1) > 0, averages, np.nan)


def _reduce_rows(rule: MeasureRule, rows: Sequence[_FLOAT], weights: NDArray[np.int64]) -> _FLOAT:
    width = max(of_case.shape[1] for of_case in rows)
    stacked = np.concatenate([of_case.reshape(-1, width) for of_case in rows])
    case = np.repeat(np.arange(len(rows)), [len(of_case) for of_case in rows])
    numbers = []
    for drawn in weights:
        chosen = np.repeat(np.arange(len(stacked)), drawn[case])
        numbers.append(rule.of_rows(stacked[chosen]) if rule.of_rows and chosen.size else np.nan)
    return np.array(numbers, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class DefinedRanking:
    """The result of ranking teams by a challenge definition.

    `numbers` maps the id of each measure to its values (m,). `scores` (m,) are the values of the
    formula or, without a formula, mean ranks; `ranks` is (m,). `stability` is None without
    resamples. `tables` hold the values of each measure of single cases, and `not_computed` the
    problems of measures by id. `draws` (B, m) are the resampled measures and the "Score". `titles`
    holds the title of each measure by id, with an arrow in the better direction. `notes` say, by
    team and case, why there is no usable answer. `score_part` returns the scores (m,) for a subset
    of the cases. `is_high` is True if larger scores are better. `title` is the title of the
    definition, and `used` holds the ids of the measures that determine the ranks. `counted` maps
    the id of each measure to the cases behind each team's number, (m, n) for the `cases`. `twins`
    name teams with the same masks.
    """

    teams: tuple[str, ...]
    numbers: Mapping[str, _FLOAT]
    scores: _FLOAT
    ranks: _FLOAT
    stability: Stability | None
    tables: tuple[RankingTable, ...]
    not_computed: Mapping[str, str]
    draws: Mapping[str, _FLOAT] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    score_part: Callable[[frozenset[str]], _FLOAT] | None = None
    is_high: bool = True
    title: str = ""
    used: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    counted: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    twins: tuple[str, ...] = ()

    def count_cases(self, name: str, part: frozenset[str] | None = None) -> NDArray[np.int64]:
        """Return the number of cases behind each team's measure, (m,), in all cases or a part."""
        chosen = [part is None or case_id in part for case_id in self.cases]
        return np.asarray(self.counted[name][:, chosen].sum(axis=1))

    def describe_counts(self) -> str:
        """Describe the number of cases behind each measure, as in "Dice ↑ 12, HD95 ↓ 9 to 11"."""
        texts = []
        for name, title in self.titles.items():
            n = self.count_cases(name)
            ends = f"{n.min():,}" if n.min() == n.max() else f"{n.min():,} to {n.max():,}"
            texts.append(f"{title} {ends}")
        return ", ".join(texts)

    @property
    def score_title(self) -> str:
        """The heading of the score: a score of a formula, or else a mean rank."""
        return "Score\N{NO-BREAK SPACE}↑" if self.is_high else "Mean rank\N{NO-BREAK SPACE}↓"

    def describe_undefined(self, team: str) -> str:
        """Say which measures of a team have no value, or return "" if all have one."""
        index = self.teams.index(team)
        names = [self.titles[name] for name, values in self.numbers.items()
                 if np.isnan(values[index])]  # fmt: skip
        if not names:
            return ""
        return f"no value of {', '.join(names)}, because a case has no usable answer"

    def draw_scores(self, team: str) -> _FLOAT:
        """Return a team's score in each resample, or an empty array without resamples."""
        drawn = self.draws.get("Score")
        return np.empty(0) if drawn is None else drawn[:, self.teams.index(team)]


def rank_by_definition(
    definition: ChallengeDefinition,
    rules: Sequence[MeasureRule],
    teams: Mapping[str, Mapping[str, MeasuredCases]],
    n_resamples: int = 0,
    seed: int = 0,
    sites: Mapping[str, str] | None = None,
) -> DefinedRanking:
    """Rank teams as a definition specifies, from the values of their cases.

    Parameters
    ----------
    definition
        The definition.
    rules
        The measures of the definition.
    teams
        The values of the cases, by team and measure.
    n_resamples, seed
        Number of resamples of the cases, and their seed.
    sites
        Site of each case, for a ranking over sites.
    """
    names = tuple(teams)
    problems = {rule.measure.id: problem for rule in rules
                if (problem := _find_problem(rule, teams))}  # fmt: skip
    computed = [rule for rule in rules if rule.measure.id not in problems]
    if not computed:
        raise FormatError(
            "cannot compute any measure: "
            f"{'; '.join(f'{name}: {problem}' for name, problem in problems.items())}"
        )
    cases = tuple(value.case_id for value in teams[names[0]][computed[0].measure.id].values)
    full = np.ones((1, len(cases)), dtype=np.int64)
    measured = {
        rule.measure.id: [measure_team(rule, teams[team][rule.measure.id].values, definition)
                          for team in names]
        for rule in computed
    }  # fmt: skip
    numbers = {name: np.stack([of_team(full)[0] for of_team in of_teams])
               for name, of_teams in measured.items()}  # fmt: skip
    made = [_tabulate(rule, teams, definition, cases) for rule in computed if rule.of_rows is None]
    tables = tuple(table for table in made if table is not None)
    ranking = definition.ranking
    sign = 1.0 if ranking.by is RankBy.SCORE else -1.0

    def score_part(part: frozenset[str]) -> _FLOAT:
        weights = np.array([[case_id in part for case_id in cases]], dtype=np.int64)
        if ranking.by is RankBy.SITES:
            of_part = [_keep_cases(table, part) for table in tables if part & {*table.cases}]
            return np.asarray(sign * -_rank_over_sites(of_part, sites or {}))
        numbers_of_part = {name: np.stack([of_team(weights)[0] for of_team in of_teams])[None]
                           for name, of_teams in measured.items()}  # fmt: skip
        of_teams = _score_teams(
            definition, computed, tables, dict(zip(cases, weights.T, strict=True)), numbers_of_part
        )[0]
        return np.asarray(sign * of_teams)

    scores = sign * score_part(frozenset(cases))
    places = rank_scores(scores, RankTies.MIN)
    titles = {rule.measure.id: f"{rule.measure.title or rule.measure.id}\N{NO-BREAK SPACE}"
              f"{'↑' if rule.sign > 0 else '↓'}" for rule in computed}  # fmt: skip
    ranked = DefinedRanking(
        names, numbers, sign * scores, places, None, tables, problems, titles=titles,
        score_part=score_part, is_high=sign > 0,
        title=definition.title or definition.name,
        used=tuple(measure.id for measure in definition.ranking_measures if measure.id in numbers),
        cases=cases,
        counted={rule.measure.id: _find_counted(rule, teams, definition) for rule in computed},
    )  # fmt: skip
    draws = _draw_measures(computed, measured, len(cases), n_resamples, seed)
    if ranking.by is RankBy.SITES or not draws:
        return ranked
    blocks = [
        _score_teams(
            definition,
            computed,
            tables,
            dict(zip(cases, weights.T, strict=True)),
            {name: drawn[first : first + len(weights)] for name, drawn in draws.items()},
        )
        for first, weights in _number_blocks(len(cases), n_resamples, seed)
    ]
    drawn_scores = np.concatenate(blocks)
    stable = stability_of(places, rank_scores(drawn_scores, RankTies.MIN))
    resampled = {rule.measure.id: draws[rule.measure.id] for rule in computed if rule.is_resampled}
    resampled["Score"] = sign * drawn_scores
    return replace(ranked, stability=stable, draws=resampled)


def _number_blocks(n: int, n_resamples: int, seed: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield blocks of resamples, each with the number of its first resample."""
    first = 0
    for weights in seeded_weights(n, n_resamples, seed) if n_resamples else ():
        yield first, weights
        first += len(weights)


def _draw_measures(
    rules: Sequence[MeasureRule],
    measured: Mapping[str, Sequence[Callable[[NDArray[np.int64]], _FLOAT]]],
    n_cases: int,
    n_resamples: int,
    seed: int,
) -> dict[str, _FLOAT]:
    """Return each measure in each resample (B, m); slow measures keep their original value."""
    full = np.ones((1, n_cases), dtype=np.int64)
    draws: dict[str, list[_FLOAT]] = {}
    for _, weights in _number_blocks(n_cases, n_resamples, seed):
        for rule in rules:
            name = rule.measure.id
            report_progress(0, 1, f"Resampling {name}")
            columns = [
                of_team(weights if rule.is_resampled else full) for of_team in measured[name]
            ]
            block = np.broadcast_to(np.stack(columns, axis=1), (len(weights), len(columns)))
            draws.setdefault(name, []).append(block)
    return {name: np.concatenate(blocks) for name, blocks in draws.items()}


def describe_ranking(definition: ChallengeDefinition) -> str:
    """Describe the ranking method of a definition, as part of a sentence."""
    ranking, groups = definition.ranking, definition.ranking.within
    if ranking.by is RankBy.SCORE:
        return ranking.score
    if ranking.by is RankBy.SITES:
        return "mean rank (1 is best) over sites and measures (FeTS 2022)"
    where = "in each case" if ranking.by is RankBy.CASES else f"by {definition.average.value}"
    over = f"{len(groups)} groups of measures" if groups else "measures"
    return f"mean rank (1 is best) over {over}, ranked {where}"


def _find_problem(rule: MeasureRule, teams: Mapping[str, Mapping[str, MeasuredCases]]) -> str:
    return next((problem for team in teams.values() if (problem := team[rule.measure.id].problem)),
                "")  # fmt: skip


def _tabulate(
    rule: MeasureRule,
    teams: Mapping[str, Mapping[str, MeasuredCases]],
    definition: ChallengeDefinition,
    cases: tuple[str, ...],
) -> RankingTable | None:
    """Return a table of a measure's values for each case and team, NaN where missing.

    The table has no rows for cases without a truth, which count for no team. It is None if no case
    is left.
    """
    name = rule.measure.id
    columns = []
    for team in teams.values():
        values = team[name].values
        counted = count_values(values, definition.missing, rule.sign) or [
            np.array(value.rows) if value.is_usable else None for value in values
        ]
        columns.append([np.nan if rows is None or not np.isfinite(rows).all() else rows[0, 0]
                        for rows in counted])  # fmt: skip
    given = [[value.is_usable for value in team[name].values] for team in teams.values()]
    has_truth = np.asarray(_has_truth(name, teams).any(axis=0))
    if not has_truth.any():
        return None
    kept = tuple(
        case_id for case_id, is_kept in zip(cases, list(has_truth), strict=True) if is_kept
    )
    return RankingTable(tuple(teams), kept, np.array(columns).T[has_truth], rule.sign > 0,
                        metric=name, given=np.array(given).T[has_truth])  # fmt: skip


def _has_truth(name: str, teams: Mapping[str, Mapping[str, MeasuredCases]]) -> NDArray[np.bool_]:
    """Return whether each case has a truth for a measure, (m, n)."""
    return np.array([[value.state is not ValueState.NO_TRUTH for value in team[name].values]
                     for team in teams.values()])  # fmt: skip


def _find_counted(
    rule: MeasureRule,
    teams: Mapping[str, Mapping[str, MeasuredCases]],
    definition: ChallengeDefinition,
) -> NDArray[np.bool_]:
    """Return whether each case counts for each team's measure, (m, n)."""
    counted = _has_truth(rule.measure.id, teams)
    for row, team in zip(counted, teams.values(), strict=True):
        values = count_values(team[rule.measure.id].values, definition.missing, rule.sign)
        if values is not None:
            row[:] = [of_case is not None for of_case in values]
    return counted


def _score_teams(
    definition: ChallengeDefinition,
    rules: Sequence[MeasureRule],
    tables: Sequence[RankingTable],
    weights: Mapping[str, NDArray[np.int64]],
    numbers: Mapping[str, _FLOAT],
) -> _FLOAT:
    """Compute teams' scores (b, m) from their measures (b, m) and weights (b,) by case.

    Larger scores are better.
    """
    ranking = definition.ranking
    if ranking.by is RankBy.SCORE:
        return np.asarray(evaluate_formula(ranking.score, numbers))
    if ranking.by is RankBy.CASES:
        settings = RankSettings(ties=ranking.ties, missing=MissingRule(MissingKind.WORST_RANK))
        ranks = {}
        for table in tables:
            of_cases = rank_cases(fill_missing(table, settings), settings)
            of_table = np.stack([weights[case_id] for case_id in table.cases], axis=1)
            with np.errstate(invalid="ignore"):
                ranks[table.metric] = weighted_mean(of_table, of_cases)
    else:
        ranks = {rule.measure.id: rank_scores(rule.sign * numbers[rule.measure.id], ranking.ties)
                 for rule in rules}  # fmt: skip
    groups = ranking.within or tuple((name,) for name in ranks)
    means = []
    for group in groups:
        of_group = [ranks[name] for name in group if name in ranks]
        if of_group:
            mean = np.mean(of_group, axis=0)
            means.append(mean if len(of_group) == 1 else rank_scores(-mean, ranking.ties))
    return -np.asarray(np.mean(means, axis=0))


def _keep_cases(table: RankingTable, part: frozenset[str]) -> RankingTable:
    """Return a table with only the rows of the given cases."""
    chosen = np.flatnonzero([case_id in part for case_id in table.cases])
    cases = tuple(table.cases[index] for index in chosen)
    return RankingTable(
        table.algorithms, cases, table.values[chosen], table.is_larger_better, metric=table.metric
    )


def _rank_over_sites(tables: Sequence[RankingTable], sites: Mapping[str, str]) -> _FLOAT:
    parts = []
    for table in tables:
        names = np.array([sites.get(case, "") for case in table.cases])
        for site in dict.fromkeys(names):
            chosen = np.flatnonzero(names == site)
            parts.append(RankingTable(table.algorithms, tuple(table.cases[k] for k in chosen),
                                      table.values[chosen], table.is_larger_better,
                                      metric=table.metric, site=str(site) or "-"))  # fmt: skip
    return rank_sites(parts).mean_ranks


_OPERATORS: Final[Mapping[type, Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"min": np.minimum, "max": np.maximum}


def evaluate_formula(formula: str, numbers: Mapping[str, Any]) -> Any:
    """Evaluate a formula of + - * / min max, numbers and names, without running code.

    Parameters
    ----------
    formula
        The formula.
    numbers
        Numbers or arrays by name.

    Raises
    ------
    FormatError
        If the formula contains anything else, or an unknown name.

    Examples
    --------
    >>> evaluate_formula("(dsc + 1 - min(hd, 1)) / 2", {"dsc": 0.8, "hd": 0.2})
    0.8
    """
    try:
        value = _evaluate_node(ast.parse(formula, mode="eval").body, numbers)
    except (SyntaxError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            f"expected a formula of + - * / min max and the names {', '.join(numbers)}, but found "
            f"{formula!r} ({error})"
        ) from error
    return float(value) if np.ndim(value) == 0 else value


def _evaluate_node(node: ast.expr, numbers: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.BinOp):
        left, right = _evaluate_node(node.left, numbers), _evaluate_node(node.right, numbers)
        with np.errstate(all="ignore"):
            return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate_node(node.operand, numbers)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        values = [_evaluate_node(argument, numbers) for argument in node.args]
        return reduce(_FUNCTIONS[node.func.id], values)
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return np.float64(node.value)
    raise TypeError(f"{type(node).__name__} is not allowed")
