"""Tables of several models in a report: ranks, paired tests, and variants of the ranking score."""

from collections.abc import Mapping, Sequence
from math import nan
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.comparison import PairedComparison
from napari_mamamia.scoring.cohort.ranking import CompositeResult, CompositeScore, Sweep
from napari_mamamia.scoring.cohort.results import ModelComparison, n_text
from napari_mamamia.scoring.report.content import ModelReport
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    p_text,
    range_text,
)

_MOST_TESTS: Final = 30
"""Largest number of paired tests on a page; beyond it, only neighbouring ranks are compared."""


def composite_tables(composites: Sequence[CompositeResult]) -> tuple[ReportTable, ...]:
    """Return one table for each variant of the ranking score, with its definition below."""
    headings = (
        Column("Rank"),
        Column("Model", is_number=False),
        Column("Score"),
        Column("Fairness weight"),
        Column("Fairness counts", is_number=False),
        Column("Why", is_number=False),
    )
    return tuple(
        ReportTable(
            f"Variant of the ranking score: {composite.name}",
            headings,
            tuple(_composite_row(score) for score in _by_rank(composite.scores)),
            (f"{composite.definition[:1].upper()}{composite.definition[1:]}.",),
        )
        for composite in composites
    )


def _by_rank(scores: Sequence[CompositeScore]) -> list[CompositeScore]:
    return sorted(scores, key=lambda score: (score.rank != score.rank, score.rank))


def _composite_row(score: CompositeScore) -> Row:
    counts = "yes" if score.counts_fairness else "no"
    cells = (number(score.rank, 0), score.name, number(score.value), number(score.weight, 2))
    return Row((*cells, counts, score.reason))


def models_table(models: Sequence[ModelReport], links: Mapping[str, str]) -> ReportTable:
    """Return the models with their main metrics, each linked to a separate page."""
    rows = []
    for model in models:
        scores = model.scores
        task1, task2 = scores.segmentation, scores.response
        score = fairness = nan
        if task1 is not None:
            score, fairness = task1.cohort.ranking_score, float(task1.cohort.fairness.value)
        elif task2 is not None:
            score, fairness = task2.cohort.ranking_score, task2.cohort.fairness
        cells = (scores.name, f"{scores.n_scored:,}", number(score), number(fairness))
        rows.append(Row(cells, link=links.get(scores.name, "")))
    heads = ("Scored", "Ranking score", "Fairness")
    columns = (Column("Model", is_number=False), *(Column(text) for text in heads))
    return ReportTable("Models", columns, tuple(rows))


def comparison_tables(
    comparison: ModelComparison, links: Mapping[str, str] = MappingProxyType({})
) -> tuple[ReportTable, ...]:
    """Return the ranking of several models, and the paired tests between them.

    `links` maps a model's name to the model's page.
    """
    ordered = sorted(comparison.ranking, key=lambda m: (m.rank != m.rank, m.rank))
    ranking = tuple(
        Row(
            (
                m.name,
                number(m.rank, 0),
                n_text(m),
                number(m.ranking_score),
                number(m.performance),
                number(m.fairness),
                number(m.rank_by_performance, 0),
            ),
            link=links.get(m.name, ""),
        )
        for m in ordered
    )
    head = (
        Column("Model", is_number=False),
        *(
            Column(text)
            for text in (
                "Rank",
                "n",
                "Ranking score",
                "Performance",
                "Fairness",
                "Rank by performance",
            )
        ),
    )
    first = ReportTable(
        f"Ranking (profile {comparison.profile}, fairness weight "
        f"{comparison.weight_of_fairness:g})",
        head,
        ranking,
        (*comparison.notes, *(f"{m.name}: {m.reason}" for m in ordered if m.reason)),
    )
    tables = [first, *composite_tables(comparison.composites)]
    if comparison.against_baseline:
        title = f"Against the baseline {comparison.baseline}"
        tables.append(tests_table(title, comparison.against_baseline))
    if len(comparison.tests) > len(comparison.against_baseline):
        tests = comparison.tests
        title = "Paired comparisons"
        if len(tests) > _MOST_TESTS:
            order = {model.name: index for index, model in enumerate(ordered)}
            near = [test for test in tests if abs(order[test.model_a] - order[test.model_b]) == 1]
            title = f"Paired comparisons of neighbours; all {len(tests)} are in comparison.json"
            tests = tuple(near)
        tables.append(tests_table(title, tests))
    return tuple(tables)


def say_weights(sweep: Sweep, weight: float) -> str:
    """Return a sentence with the nearest fairness weights at which another model leads, or "".

    The weights are those of the sweep, by default hundredths.
    """
    index = int(np.argmin(np.abs(sweep.weights - weight)))
    leaders = [_find_first(sweep.ranks[:, column]) for column in range(len(sweep.weights))]
    if not leaders[index]:
        return ""
    texts = []
    for places in (range(index - 1, -1, -1), range(index + 1, len(leaders))):
        place = next((one for one in places if leaders[one] != leaders[index]), None)
        if place is not None:
            names = ", ".join(sweep.names[model] for model in sorted(leaders[place]))
            verb = "leads" if len(leaders[place]) == 1 else "share the lead"
            texts.append(f"at {sweep.weights[place]:g} {names} {verb}")
    if not texts:
        return "The same model leads at every fairness weight."
    return f"With a fairness weight other than {weight:g}: {'; '.join(texts)}."


def _find_first(ranks: NDArray[np.float64]) -> frozenset[int]:
    return frozenset(np.flatnonzero(ranks == 1).tolist())


def tests_table(title: str, tests: Sequence[PairedComparison]) -> ReportTable:
    """Return paired tests of models, with p-values after Holm's correction."""
    rows = tuple(
        Row(
            (
                f"{'Dice' if t.metric == 'dsc' else 'NormHD'}: {t.model_a} − {t.model_b}",
                f"{t.n}",
                number(t.mean_difference),
                range_text(t.low, t.high),
                p_text(t.p_t_test_holm),
                p_text(t.p_wilcoxon_holm),
            )
        )
        for t in tests
    )
    headings = ("n", "Mean difference", "95 % interval", "p, t-test", "p, Wilcoxon")
    return ReportTable(
        title,
        (Column("Metric and models", is_number=False), *(Column(text) for text in headings)),
        rows,
        (
            "Both p-values are two-sided and corrected by Holm over the pairs of a metric in this "
            "table.",
        ),
    )
