"""Write the report of a scoring run: page, figures, failure kinds, images of the worst cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.scoring.case.pair import laid_on
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores
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
from napari_mamamia.services.score.composite import (
    rank_models,
    rank_response_models,
    say_unequal_responses,
)
from napari_mamamia.services.score.inspections import NO_LOOKS, Looks, read_pair
from napari_mamamia.services.score.settings import ScoreSettings

REPORT: Final = "report.html"
FIGURES: Final = "figures"

_COMPARED: Final = (ScoreStatus.OK, ScoreStatus.PREDICTION_EMPTY, ScoreStatus.PREDICTION_MISSING)


@dataclass(frozen=True, slots=True)
class Scored:
    """One model's scores and, for scored masks, the files (reference, prediction) by case.

    `looks` holds the inspections for failure kinds.
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

    With several models ``report.html`` covers all of them, and links to ``NAME/report.html`` of
    each.

    The masks of the worst cases are read again for their images. A mask that cannot be read causes
    a warning and has no image.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    content, lacks = report_content(scored, settings, comparison)
    with drawing_place() as draw_anew:
        draw = draw_each_once(draw_anew)
        write = write_report if len(scored) == 1 else write_reports
        write(content, out / REPORT, overwrite=overwrite, draw=draw)
        write_figures(content, out / FIGURES, overwrite=overwrite, draw=draw)
    return lacks


def write_report_page(
    scored: Sequence[Scored],
    path: Path,
    settings: ScoreSettings,
    comparison: ModelComparison | None = None,
    *,
    overwrite: bool = False,
) -> tuple[tuple[str, ...], ...]:
    """Write only the page, to `path`; otherwise as `write_score_report`."""
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
    """Return a report of several models with a summary: the leader, and how certain the lead is."""
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
            warnings.append(f"the report has no picture of {case_id} ({model.name}): {error}")
    report = report_of(model, failures, pictures, _make_columns(looks))
    return replace(report, contrast_note=looks.note), tuple(warnings)


def _make_columns(looks: Looks) -> tuple[CaseColumn, ...]:
    """Return the columns of the case table besides the voxel metrics."""
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
    """Return the image of a case from its reference and prediction; none without a prediction.

    Raises `MamamiaError` if its masks cannot be read or compared any more.
    """
    reference, prediction = read_pair(files, settings.label, settings.profile)
    if prediction is None:
        return []
    turned = laid_on(reference, prediction, settings.profile)
    # one grid for both: official-code compares arrays of equal shape whatever their affines
    label_map = LabelMap(reference.grid, turned.box, turned.crop)
    masks = (reference.mask(settings.label_value), label_map.mask(settings.label_value))
    return [picture_of(case_id, *masks, model=model)]
