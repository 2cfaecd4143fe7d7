"""Format the results of classifiers as lines for the terminal."""

from collections.abc import Iterator

from napari_mamamia.scoring.classifier.scores import ClassifierResult, ClassifierScores
from napari_mamamia.scoring.report.classifier import format_ends
from napari_mamamia.scoring.report.text import number, p_said

_MOST_PAIRS = 10


def classifier_lines(
    result: ClassifierResult, notes: tuple[str, ...], unit: str
) -> tuple[str, ...]:
    """Return the results as lines: models by AUC, operating points, reader, pairs and notes."""
    return tuple(_list_lines(result, notes, unit))


def _list_lines(result: ClassifierResult, notes: tuple[str, ...], unit: str) -> Iterator[str]:
    yield f"{result.n:,} {unit}{'s' if result.n != 1 else ''}, {result.n_positive:,} positive"
    for model in sorted(result.models, key=lambda model: (model.auc != model.auc, -model.auc)):
        yield from _describe_model(model, result)
    if result.reader is not None:
        yield (
            f"  the reader: sensitivity {number(result.reader.sensitivity)}, specificity "
            f"{number(result.reader.specificity)}"
        )
    for leader in result.leaders:
        tied = ", ".join(leader.tied)
        end = "leads robustly" if len(leader.tied) == 1 else f"first by partial AUC among {tied}"
        yield f"  rule {leader.rule.value}: {leader.winner} {end}"
    factors = {(factor.better, factor.other): factor for factor in result.factors}
    for pair in result.pairs[:_MOST_PAIRS]:
        a, b = pair.model_a, pair.model_b
        if pair.delong.auc_a < pair.delong.auc_b:
            a, b = b, a
        yield (
            f"  {a} over {b}: AUC higher by {number(abs(pair.delong.auc_a - pair.delong.auc_b))}, "
            f"K {factors[a, b].text}, DeLong {p_said(pair.p_holm)} after Holm"
        )
    if len(result.pairs) > _MOST_PAIRS:
        yield f"  {len(result.pairs) - _MOST_PAIRS:,} more pairs are listed in the report"
    for note in notes:
        yield f"  note: {note}"


def _describe_model(model: ClassifierScores, result: ClassifierResult) -> Iterator[str]:
    yield f"  {model.name}: AUC {number(model.auc)} ({format_ends(model.auc_bootstrap)})"
    partial = model.partial_auc
    yield (
        f"    partial AUC above sensitivity {result.above:g}: {number(partial.raw, 4)}, "
        f"{number(partial.scaled)} of the largest"
    )
    for point, ends in zip(model.specificity_at, model.specificity_bootstrap, strict=True):
        is_reader = result.reader is not None and point.sensitivity == result.reader.sensitivity
        beyond = ends.minus_reader
        yield (
            f"    specificity at sensitivity {point.sensitivity:.4g}"
            f"{' (the reader)' if is_reader else ''}: {number(point.threshold)} "
            f"({format_ends(ends.threshold)}) by threshold, "
            f"{number(point.interpolated)} interpolated"
            + (f"; minus the reader's: {format_ends(beyond)}" if beyond else "")
        )
