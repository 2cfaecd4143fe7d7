"""Write the report of a scoring run, including its worst cases and the stability of ranks."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.choices import RankMethod
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.scoring.case.profiles import UnusableRules, profile_named
from napari_mamamia.scoring.case.score import laid_on
from napari_mamamia.scoring.classifier.response_ranking import (
    NamedPredictions,
    ResponseRanking,
    rank_responses,
)
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases, rules_of
from napari_mamamia.scoring.cohort.policy import CountedCases, count_cases
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores
from napari_mamamia.scoring.cohort.segmentation_cohort import ranking_scores_of_weights
from napari_mamamia.scoring.ranking.methods import Composite, Weights, rank_scores
from napari_mamamia.scoring.ranking.ranking import MethodRanking, seeded_weights, stability_of
from napari_mamamia.scoring.report.answers import answer_comparison, answer_responses
from napari_mamamia.scoring.report.content import (
    CaseColumn,
    ModelReport,
    RankedModels,
    ReportContent,
    report_of,
)
from napari_mamamia.scoring.report.drawing import draw_each_once
from napari_mamamia.scoring.report.gallery import CasePicture, picture_of, worst_cases
from napari_mamamia.scoring.report.report import write_report, write_reports
from napari_mamamia.scoring.report.report_figures import write_figures
from napari_mamamia.scoring.report.text import Answer
from napari_mamamia.services.batch.in_subprocess import drawing_place
from napari_mamamia.services.score.clinical_table import matched
from napari_mamamia.services.score.inspections import NO_LOOKS, Looks, read_pair
from napari_mamamia.services.score.settings import ScoreSettings

_ROUNDING: Final = 1e-9
_NAMED: Final = 3
_MOST_CASES: Final = 20_000
"""Largest number of cases for which models are ranked in resamples.

With more cases, ranks hardly change between resamples.
"""
REPORT: Final = "report.html"
FIGURES: Final = "figures"

_COMPARED: Final = (ScoreStatus.OK, ScoreStatus.PREDICTION_EMPTY, ScoreStatus.PREDICTION_MISSING)


def count_model(model: ModelScores) -> CountedCases:
    """Return the counted cases of a model; raise `FormatError` if it has no mask scores."""
    if model.segmentation is None:
        raise FormatError(
            f"expected {model.name} to have scores of masks, but found none: score its masks again"
        )
    return model.segmentation.counted


def make_composite(
    models: Sequence[ModelScores], cases: Sequence[str], cohort: Cohort | None
) -> Composite:
    """Return the challenge's ranking score as a function of case weights.

    Unusable cases get the values that make the score lowest. Without a clinical table the score is
    the performance.
    """
    places = {case_id: index for index, case_id in enumerate(cases)}
    parts = []
    for model in models:
        counted = count_model(model)
        rules = rules_of(model.profile)
        weight = rules.weight_of_fairness if cohort is not None else 0.0
        groupings: tuple[Grouping, ...] = ()
        if cohort is not None:
            people = matched(counted.case_ids, cohort)
            groupings = group_cases(counted.case_ids, people, rules)
        columns = np.array(
            [places[case_identifier] for case_identifier in counted.case_ids], dtype=np.intp
        )
        parts.append((columns, counted, groupings, weight))

    def score(weights: Weights) -> NDArray[np.float64]:
        by_model = [
            ranking_scores_of_weights(counted, groupings, weight, weights[:, columns])
            for columns, counted, groupings, weight in parts
        ]
        return np.stack(by_model, axis=1)

    return score


def guarded_score(model: ModelScores, cohort: Cohort | None) -> float:
    """Return a model's ranking score with the least favourable values for empty predictions.

    A challenge shows this score next to the official score. If a profile assigns a value to an
    empty prediction, a model could narrow the gaps between groups by returning empty predictions
    for the best group. The result is NaN if no prediction is empty.
    """
    profile = profile_named(model.profile)
    if not profile.unusable.empty_is_value or count_model(model).rejected:
        return float("nan")
    counted = count_cases(model.rows, replace(profile, unusable=UnusableRules()))
    if not counted.has_free:
        return float("nan")
    rules = rules_of(model.profile)
    groupings: tuple[Grouping, ...] = ()
    if cohort is not None:
        groupings = group_cases(counted.case_ids, matched(counted.case_ids, cohort), rules)
    weight = rules.weight_of_fairness if groupings else 0.0
    everybody = np.ones((1, counted.n), dtype=np.int64)
    return float(ranking_scores_of_weights(counted, groupings, weight, everybody)[0])


def rank_models(models: Sequence[ModelScores], n_resamples: int, seed: int) -> RankedModels | None:
    """Return the stability of the models' ranks by the ranking score of their masks.

    The result is None without resamples, with fewer than two scored models, if their cases differ,
    or if the clinical rows behind their scores are missing.
    """
    scored = [
        model
        for model in models
        if model.segmentation and not np.isnan(model.segmentation.cohort.ranking_score)
    ]
    if len(scored) < 2 or not n_resamples:
        return None
    cases = count_model(scored[0]).case_ids
    if len(cases) > _MOST_CASES or any(
        set(count_model(model).case_ids) != set(cases) for model in scored
    ):
        return None
    composite = make_composite(scored, cases, scored[0].cohort)
    scores = np.array(
        [model.segmentation.cohort.ranking_score for model in scored if model.segmentation]
    )
    whole = composite(np.ones((1, len(cases)), dtype=np.int64))[0]
    # A case that might be excluded makes the result a lower bound of the score.
    bounded = any(count_model(model).optional.any() for model in scored)
    if not bounded and not np.allclose(whole, scores, rtol=0, atol=_ROUNDING):
        return None  # This differs from the score by which the models are ranked.
    ranks = rank_scores(scores)
    drawn = []
    for weights in seeded_weights(len(cases), n_resamples, seed):
        report_progress(0, 1, "Ranking the models in resamples")
        drawn.append(composite(weights))
    draws = np.concatenate(drawn)
    method = MethodRanking(
        RankMethod.COMPOSITE, scores, ranks, stability_of(ranks, rank_scores(draws))
    )
    return RankedModels(tuple(model.name for model in scored), method, len(draws))


def rank_response_models(
    models: Sequence[ModelScores], n_resamples: int, seed: int
) -> ResponseRanking | None:
    """Return the ranking of response models, or None if they predict different cases."""
    named = [
        NamedPredictions(model.name, model.response.predictions)
        for model in models
        if model.response
    ]
    if len(named) < 2 or len({result.predictions.case_ids for result in named}) > 1:
        return None
    case_ids, cohort = named[0].predictions.case_ids, models[0].cohort
    if len(case_ids) > _MOST_CASES:
        return None
    rules = rules_of(models[0].profile)
    groupings = () if cohort is None else group_cases(case_ids, cohort, rules)
    return rank_responses(named, groupings, rules, n_resamples, seed)


def say_unequal_responses(models: Sequence[ModelScores]) -> str | None:
    """Explain why response models are not ranked, or return None if all predict the same cases.

    A model that omits difficult cases has better results on the other cases.
    """
    answered = {
        model.name: set(model.response.predictions.case_ids) for model in models if model.response
    }
    every = set().union(*answered.values())
    lacking = {name: sorted(every - cases) for name, cases in answered.items() if cases != every}
    if not lacking:
        return None
    parts = []
    for name, case_ids in lacking.items():
        names = ", ".join(case_ids[:_NAMED]) + (", ..." if len(case_ids) > _NAMED else "")
        parts.append(f"{name} lacks {len(case_ids):,} of {len(every):,} ({names})")
    return (
        f"No model is ranked, because the models predict different cases: {'; '.join(parts)}. The "
        "results of each model are computed over its own cases."
    )


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a model and, for scored masks, the files (reference, prediction) by case.

    `looks` has the inspections for failure kinds.
    """

    model: ModelScores
    pairs: Mapping[str, tuple[Path | None, Path | None]] | None = None
    looks: Looks = NO_LOOKS


def write_score_report(
    scored: Sequence[Scored],
    out: Path,
    settings: ScoreSettings,
    comparison: ModelComparison | None = None,
    *,
    overwrite: bool = False,
) -> tuple[tuple[str, ...], ...]:
    """Write ``report.html`` and the folder ``figures``, and return each model's warnings.

    With several models, ``report.html`` covers all models and links to each ``NAME/report.html``.

    The masks of the worst cases are read again for their images. A mask that cannot be read causes
    a warning and has no image. Settings without a report write nothing, and remove the page and the
    figures of an earlier run that is overwritten.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is False.
    SaveError
        If a file cannot be written.
    """
    if not settings.with_report:
        if overwrite:
            _remove_report(out)
        return tuple(() for _ in scored)
    content, lacks = report_content(scored, settings, comparison)
    with drawing_place() as draw_anew:
        draw = draw_each_once(draw_anew)
        write = write_report if len(scored) == 1 else write_reports
        write(content, out / REPORT, overwrite=overwrite, draw=draw)
        write_figures(content, out / FIGURES, overwrite=overwrite, draw=draw)
    return lacks


def _remove_report(out: Path) -> None:
    """Remove the page and figures of an earlier run, because they would show different results."""
    (out / REPORT).unlink(missing_ok=True)
    figures = out / FIGURES
    if figures.is_symlink():
        return
    for folder, _, names in os.walk(figures):
        for path in map(Path(folder).joinpath, names):
            if path.suffix in (".png", ".svg"):
                path.unlink(missing_ok=True)


def write_report_page(
    scored: Sequence[Scored],
    path: Path,
    settings: ScoreSettings,
    comparison: ModelComparison | None = None,
    *,
    overwrite: bool = False,
) -> tuple[tuple[str, ...], ...]:
    """Write only the page to `path`, otherwise as in `write_score_report`."""
    content, lacks = report_content(scored, settings, comparison)
    with drawing_place() as draw:
        write_report(content, path, overwrite=overwrite, draw=draw)
    return lacks


def report_content(
    scored: Sequence[Scored], settings: ScoreSettings, comparison: ModelComparison | None
) -> tuple[ReportContent, tuple[tuple[str, ...], ...]]:
    """Return the content of a report, and each model's warnings."""
    parts: list[ModelReport] = []
    lacks: list[tuple[str, ...]] = []
    for item in scored:
        part, warnings = _report_model(item, settings)
        parts.append(part)
        lacks.append(warnings)
    baseline = comparison.baseline if comparison else ""
    content = ReportContent(tuple(parts), comparison=comparison, baseline=baseline)
    if len(scored) > 1:
        content = _summarise_models(content, [item.model for item in scored], settings)
    return content, tuple(lacks)


def _summarise_models(
    content: ReportContent, models: Sequence[ModelScores], settings: ScoreSettings
) -> ReportContent:
    """Return the content of a report on several models with a summary of the leading model."""
    n_resamples, seed = settings.n_resamples, settings.seed
    if content.comparison is not None:
        ranks = rank_models(models, n_resamples, seed)
        return replace(content, ranks=ranks, summary=answer_comparison(content.comparison, ranks))
    unequal = say_unequal_responses(models)
    if unequal is not None:
        return replace(content, summary=(Answer("Who leads", (unequal,)),), is_ranked=False)
    responses = rank_response_models(models, n_resamples, seed)
    if responses is None:
        return content
    results = [(model.name, model.response) for model in models if model.response is not None]
    ranks = RankedModels(responses.names, responses.method, responses.n_draws)
    return replace(content, ranks=ranks, summary=answer_responses(responses, results))


def _report_model(item: Scored, settings: ScoreSettings) -> tuple[ModelReport, tuple[str, ...]]:
    model, pairs = item.model, item.pairs
    if pairs is None:
        return (report_of(model)), ()
    looks = item.looks
    failures = {look.case_id: look.failures for look in looks.cases}
    pictures: list[CasePicture] = []
    warnings: list[str] = []
    worst = worst_cases([row for row in model.rows if row.status in _COMPARED])
    for number, case_id in enumerate(worst):
        report_progress(number, len(worst), f"Picture of {case_id}")
        try:
            pictures += picture_pair(model.name, case_id, pairs[case_id], settings)
        except MamamiaError as error:
            warnings.append(
                f"there is no picture of {case_id} ({model.name}) in the report: {error}"
            )
    report = report_of(model, failures, pictures, _make_columns(looks))
    return replace(report, contrast_note=looks.note), tuple(warnings)


def _make_columns(looks: Looks) -> tuple[CaseColumn, ...]:
    """Return the additional columns of the case table, which are not voxel metrics."""
    counts = tuple(
        CaseColumn(
            f"lesions_{kind}",
            f"Lesions {kind} (any overlap)",
            {
                look.case_id: getattr(look.lesions, kind)
                for look in looks.cases
                if look.lesions is not None
            },
        )
        for kind in ("found", "missed", "false")
    )
    contrast = {look.case_id: look.contrast for look in looks.cases}
    title = "Contrast of the reference to its surroundings"
    return (*counts, CaseColumn("contrast_to_noise", title, contrast, "SD", 1))


def picture_pair(
    model: str, case_id: str, files: tuple[Path | None, Path | None], settings: ScoreSettings
) -> list[CasePicture]:
    """Return the image of a case from its reference and prediction, or [] without a prediction.

    If the masks can no longer be read or compared, a `MamamiaError` is raised.
    """
    reference, prediction = read_pair(files, settings.label, settings.profile)
    if prediction is None:
        return []
    turned = laid_on(reference, prediction, settings.profile)
    # Both masks use one grid, because official-code compares arrays of equal shape and ignores
    # the affines.
    label_map = LabelMap(reference.grid, turned.box, turned.crop)
    masks = (reference.mask(settings.label_value), label_map.mask(settings.label_value))
    return [picture_of(case_id, *masks, model=model)]
