"""Compute all numbers of classifiers on one set of cases: points, intervals, comparisons."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.scoring.classifier.against import (
    BayesRule,
    against_reader,
    bayes_factors,
    pair_models,
    percentile_ends,
    robust_leader,
)
from napari_mamamia.scoring.classifier.operating import (
    OperatingPoint,
    PartialAuc,
    ReaderPoint,
    RocPoints,
    SortedCases,
    reader_point,
    too_few_for,
)
from napari_mamamia.scoring.classifier.results import (
    SMALL_GROUP,
    ClassifierCases,
    ClassifierResult,
    ClassifierRules,
    ClassifierScores,
    Ends,
    GroupModel,
    PointInterval,
    Subgroup,
)
from napari_mamamia.scoring.statistics.auc import auc_interval
from napari_mamamia.scoring.statistics.performance import ratio
from napari_mamamia.scoring.statistics.resampling import draw_cases, weigh_cases

_HELD: Final = 1 << 18
"""Number of cases times resamples that are counted in one step."""


def score_classifiers(
    cases: ClassifierCases,
    rules: ClassifierRules | None = None,
    draws: Sequence[NDArray[np.int64]] | None = None,
) -> ClassifierResult:
    """Return all numbers of models on the same cases; nan with a note if one is undefined.

    Parameters
    ----------
    cases
        Labels and scores.
    rules
        Operating points and resampling; None for the defaults.
    draws
        The resamples, each an array of case indices; None draws cases, or their clusters, with
        `statistics.resampling.draw_cases`.

    Raises
    ------
    ValueError
        If there is no case.
    """
    rules = rules or ClassifierRules()
    if not cases.ids:
        raise ValueError("expected at least one case with a label, but found none")
    reader = None if cases.recall is None else reader_point(cases.label, cases.recall)
    of_reader = () if reader is None or np.isnan(reader.sensitivity) else (reader.sensitivity,)
    sensitivities = tuple(dict.fromkeys((*rules.sensitivities, *of_reader)))
    ready = [SortedCases.of(cases.label, scores) for scores in cases.scores]
    drawn = _Drawn.of(cases, ready, rules, sensitivities, reader, draws)
    models = tuple(
        _score_model(cases, index, sorted_cases, rules, sensitivities, reader, drawn)
        for index, sorted_cases in enumerate(ready)
    )
    aucs = drawn.numbers[:, :, 0]
    own_aucs = np.array([model.auc for model in models])
    own_partial = np.array([model.partial_auc.raw for model in models])
    leaders = [robust_leader(cases.models, own_aucs, own_partial, aucs, rule) for rule in BayesRule]
    return ClassifierResult(
        len(cases.ids),
        cases.n_positive,
        rules.above,
        sensitivities,
        models,
        reader,
        bayes_factors(aucs, cases.models),
        tuple(leader for leader in leaders if leader) if len(models) > 1 else (),
        pair_models(cases.label, cases.scores, cases.models, aucs),
        tuple(_list_subgroups(cases, models)),
        len(aucs),
        int(np.isnan(aucs[:, 0]).sum()),
        cases.clusters.n if cases.clusters else len(cases.ids),
        tuple(_list_notes(cases, sensitivities, reader)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Numbers of resamples: `numbers` (B, k, m), m: AUC, partial AUC, two for each point.

    `reader` (B,) is the reader's specificity in each.
    """

    numbers: NDArray[np.float64]
    reader: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        cases: ClassifierCases,
        ready: Sequence[SortedCases],
        rules: ClassifierRules,
        asked: Sequence[float],
        reader: ReaderPoint | None,
        draws: Sequence[NDArray[np.int64]] | None,
    ) -> "_Drawn":
        """Compute the numbers of every model in every resample."""
        n = len(cases.ids)
        n_draws = rules.draws_for(n) if draws is None else len(draws)
        blocks, readers, n_told = [], [], 0
        for weights in _weigh_cases(cases, n_draws, rules.seed, draws):
            sensitivity, specificity = _reader_in(cases, weights)
            targets: list[float | NDArray[np.float64]] = list(asked)
            if reader is not None and reader.sensitivity in asked:
                targets[list(asked).index(reader.sensitivity)] = sensitivity
            blocks.append(
                np.stack(
                    [_numbers_of(model.points(weights), rules.above, targets) for model in ready],
                    axis=1,
                )
            )
            readers.append(specificity)
            n_told += len(weights)
            report_progress(n_told, n_draws, "Resampling cases")
        if not blocks:
            return cls(np.empty((0, len(ready), 2 + 2 * len(asked))), np.empty(0))
        return cls(np.concatenate(blocks), np.concatenate(readers))


def _weigh_cases(
    cases: ClassifierCases,
    n_draws: int,
    seed: int,
    draws: Sequence[NDArray[np.int64]] | None,
) -> Iterator[NDArray[np.integer]]:
    """Yield blocks of rows with the number of times each resample contains each case."""
    n = len(cases.ids)
    rows = max(1, _HELD // n)
    blocks: Iterable[NDArray[np.integer]]
    if draws is not None:
        counted = (np.bincount(draw, minlength=n)[None] for draw in draws)
        blocks = _join_rows(counted, rows)
    elif not n_draws:
        blocks = ()
    elif cases.clusters is None:
        blocks = weigh_cases(draw_cases(n, n_draws, seed), n)
    else:
        n_clusters, of_row = cases.clusters.n, cases.clusters.of_row
        of_clusters = weigh_cases(draw_cases(n_clusters, n_draws, seed), n_clusters)
        blocks = (
            block[first : first + rows][:, of_row]
            for block in of_clusters
            for first in range(0, len(block), rows)
        )
    for block in blocks:
        for first in range(0, len(block), rows):
            yield block[first : first + rows]


def _join_rows(rows: Iterable[NDArray[np.integer]], most: int) -> Iterator[NDArray[np.integer]]:
    held: list[NDArray[np.integer]] = []
    for row in rows:
        held.append(row)
        if len(held) == most:
            yield np.concatenate(held)
            held.clear()
    if held:
        yield np.concatenate(held)


def _reader_in(
    cases: ClassifierCases, weights: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the reader's sensitivity and specificity in each sample, (b,) both."""
    if cases.recall is None:
        return np.full(len(weights), nan), np.full(len(weights), nan)
    is_read = ~np.isnan(cases.recall)
    yes, no = is_read & (cases.label == 1), is_read & (cases.label == 0)

    def share(of: NDArray[np.bool_], right: NDArray[np.bool_]) -> NDArray[np.float64]:
        hits = weights[:, of & right].sum(axis=1, dtype=np.float64)
        return ratio(hits, weights[:, of].sum(axis=1, dtype=np.float64))

    return share(yes, cases.recall == 1), share(no, cases.recall == 0)


def _numbers_of(
    points: RocPoints, above: float, targets: Sequence[float | NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return AUC, partial AUC and both specificities at each target, (b, m)."""
    columns = [points.auc(), points.partial_auc(above)]
    for target in targets:
        unknown = np.isnan(target) | np.zeros(len(points.positives), dtype=bool)
        both = points.specificity(np.nan_to_num(target))
        columns += [np.where(unknown, nan, column) for column in both]
    return np.stack(columns, axis=1)


def _score_model(
    cases: ClassifierCases,
    place: int,
    ready: SortedCases,
    rules: ClassifierRules,
    asked: Sequence[float],
    reader: ReaderPoint | None,
    drawn: _Drawn,
) -> ClassifierScores:
    (numbers,) = _numbers_of(ready.points(), rules.above, asked)
    delong = auc_interval(cases.label, cases.scores[place])
    replicates = drawn.numbers[:, place]
    ends = [Ends(*percentile_ends(column)) for column in replicates.T]
    cuts = tuple(ready.cut(sensitivity) for sensitivity in asked)
    points, intervals, compared = [], [], None
    for number, sensitivity in enumerate(asked):
        index = 2 + 2 * number
        points.append(OperatingPoint(sensitivity, float(numbers[index]), float(numbers[index + 1])))
        beyond = None
        if reader is not None and cases.recall is not None and sensitivity == reader.sensitivity:
            beyond = Ends(*percentile_ends(replicates[:, index] - drawn.reader))
            cut = cuts[number]
            compared = against_reader(cases.label, cases.scores[place], cases.recall, cut)
        intervals.append(PointInterval(ends[index], ends[index + 1], beyond))
    return ClassifierScores(
        cases.models[place],
        cases.n_filled[place] if cases.n_filled else 0,
        float(numbers[0]),
        delong.standard_error**2,
        Ends(delong.low, delong.high),
        ends[0],
        PartialAuc(float(numbers[1]), float(numbers[1] / (1 - rules.above))),
        ends[1],
        tuple(points),
        tuple(intervals),
        cuts,
        compared,
    )


def _list_subgroups(
    cases: ClassifierCases, models: Sequence[ClassifierScores]
) -> Iterator[Subgroup]:
    for column, values in cases.subgroups:
        each = np.array(values, dtype=object)
        for value in sorted(set(values), key=_natural_order):
            inside = each == value
            label = cases.label[inside]
            n_positive = int((label == 1).sum())
            yield Subgroup(
                column,
                value or "missing",
                int(inside.sum()),
                n_positive,
                bool(inside.sum() < SMALL_GROUP),
                tuple(
                    _score_group(model, label, scores[inside])
                    for model, scores in zip(models, cases.scores, strict=True)
                ),
            )


def _natural_order(value: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers first, then texts, then missing values."""
    try:
        return (not value, float(value), "")
    except ValueError:
        return (not value, float("inf"), value)


def _score_group(
    model: ClassifierScores, label: NDArray[np.float64], scores: NDArray[np.float64]
) -> GroupModel:
    delong = auc_interval(label, scores)
    called, cut = scores >= model.cuts[0], model.cuts[0]
    yes, no = label == 1, label == 0
    is_known = not np.isnan(cut)
    return GroupModel(
        model.name,
        delong.auc,
        Ends(delong.low, delong.high),
        float(called[yes].mean()) if yes.any() and is_known else nan,
        float(1 - called[no].mean()) if no.any() and is_known else nan,
    )


def _list_notes(
    cases: ClassifierCases, asked: Sequence[float], reader: ReaderPoint | None
) -> Iterator[str]:
    n_positive, n = cases.n_positive, len(cases.ids)
    if n_positive in (0, n):
        which = "positive" if n_positive else "negative"
        yield f"every case is {which}: no number of a ROC curve is defined"
        return
    short = (too_few_for(sensitivity, n_positive) for sensitivity in asked)
    for text in filter(None, short):
        yield text
    for name, scores in zip(cases.models, cases.scores, strict=True):
        if scores.min() == scores.max():
            yield f"{name} gives every case the same score: its AUC of 0.5 is meaningless"
    if min(n_positive, n - n_positive) < 2:
        yield "a class has a single case: DeLong's variance is undefined"
    if cases.clusters is not None and cases.clusters.n < n:
        yield (
            f"{cases.clusters.n:,} clusters of the {n:,} cases are resampled as wholes; DeLong's "
            "interval and test assume independent cases, so use the resampled ones"
        )
    for text in _note_reader(cases, reader):
        yield text


def _note_reader(cases: ClassifierCases, reader: ReaderPoint | None) -> Iterator[str]:
    if reader is None or cases.recall is None:
        return
    n_unknown = int(np.isnan(cases.recall).sum())
    if n_unknown:
        yield (
            f"the reader has no recall for {n_unknown} of {len(cases.ids)} cases; these cases "
            "are left out of the comparison"
        )
