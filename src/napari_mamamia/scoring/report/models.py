"""The tables of several models in a report: ranks, paired tests, variants of the ranking score."""

from collections.abc import Sequence

from napari_mamamia.scoring.cohort.comparison import PairedComparison
from napari_mamamia.scoring.cohort.composites import CompositeResult, CompositeScore
from napari_mamamia.scoring.cohort.results import ModelComparison, n_text
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    p_text,
    range_text,
)


def composite_tables(composites: Sequence[CompositeResult]) -> tuple[ReportTable, ...]:
    """Return one table for each variant of the ranking score, its definition below."""
    headings = (
        Column("Rank"),
        Column("Model", is_number=False),
        Column("Score"),
        Column("Weight of fairness"),
        Column("Fairness counts", is_number=False),
        Column("Why", is_number=False),
    )
    return tuple(
        ReportTable(
            f"Variant of the ranking score: {one.name}",
            headings,
            tuple(_composite_row(score) for score in _by_rank(one.scores)),
            (f"{one.definition[:1].upper()}{one.definition[1:]}.",),
        )
        for one in composites
    )


def _by_rank(scores: Sequence[CompositeScore]) -> list[CompositeScore]:
    return sorted(scores, key=lambda score: (score.rank != score.rank, score.rank))


def _composite_row(score: CompositeScore) -> Row:
    counts = "yes" if score.counts_fairness else "no"
    cells = (number(score.rank, 0), score.name, number(score.value), number(score.weight, 2))
    return Row((*cells, counts, score.reason))


def comparison_tables(comparison: ModelComparison) -> tuple[ReportTable, ...]:
    """Return the ranking of several models, and the paired tests between them."""
    ordered = sorted(comparison.ranking, key=lambda m: (m.rank != m.rank, m.rank))
    ranking = tuple(
        Row(
            (
                number(m.rank, 0),
                m.name,
                n_text(m),
                number(m.ranking_score),
                number(m.performance),
                number(m.fairness),
                number(m.rank_by_performance, 0),
            )
        )
        for m in ordered
    )
    head = (
        Column("Rank"),
        Column("Model", is_number=False),
        *(
            Column(text)
            for text in ("n", "Ranking score", "Performance", "Fairness", "Rank by performance")
        ),
    )
    first = ReportTable(
        f"Ranking (profile {comparison.profile}, weight of fairness "
        f"{comparison.weight_of_fairness:g})",
        head,
        ranking,
        (*comparison.notes, *(f"{m.name}: {m.reason}" for m in ordered if m.reason)),
    )
    tables = [first, *composite_tables(comparison.composites)]
    if comparison.against_baseline:
        title = f"Against the baseline {comparison.baseline}"
        tables.append(_tests_table(title, comparison.against_baseline))
    if len(comparison.tests) > len(comparison.against_baseline):
        tables.append(_tests_table("Paired comparisons", comparison.tests))
    return tuple(tables)


def _tests_table(title: str, tests: Sequence[PairedComparison]) -> ReportTable:
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
