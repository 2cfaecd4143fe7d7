"""Score several models against one reference and compare them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.named_paths import read_named_path
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.scoring.cohort.model_results import compare_results
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores
from napari_mamamia.services.batch.output_folder import Existing, claimed_folder
from napari_mamamia.services.batch.work import STORE_NAME, Place
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.output import COMPARISON, write_comparison, write_scores
from napari_mamamia.services.score.report import write_score_report
from napari_mamamia.services.score.score import ScoreSummary, find_cases, score_pairs
from napari_mamamia.services.score.settings import ScoreSettings


@dataclass(frozen=True, slots=True)
class PredictionFolder:
    """The name of a model and the folder of its masks."""

    name: str
    folder: Path


@dataclass(frozen=True, slots=True)
class ModelsSummary:
    """The results of each model in the given order, and the comparison of the models."""

    models: tuple[ScoreSummary, ...]
    comparison: ModelComparison
    path: Path

    @property
    def all_ok(self) -> bool:
        """Whether every case of every model has the status ok."""
        return all(model.all_ok for model in self.models)


def prediction_folder(text: str) -> PredictionFolder:
    """Parse ``NAME=DIR`` or ``DIR``; the default name is the folder name.

    Examples
    --------
    >>> prediction_folder("nnU-Net=results/fold_0").name
    'nnU-Net'
    >>> prediction_folder("results/fold_0").name
    'fold_0'
    """
    name, path = read_named_path(text)
    return PredictionFolder(name or path.resolve().name, path)


def score_models(
    reference: Path,
    predictions: Sequence[PredictionFolder],
    out: Path,
    settings: ScoreSettings | None = None,
    *,
    place: Place | None = None,
    existing: Existing = Existing.REFUSE,
) -> ModelsSummary:
    """Score each model into ``out/NAME`` and write ``out/comparison.json``.

    `place` defines where the cases are scored, by default in this process.

    Raises
    ------
    CaseError
        If a name is not a valid folder name, two models have the same name, or the baseline is not
        a model.
    FormatError
        If a folder is missing or has no mask, or the clinical table cannot be read; nothing is then
        written.
    SaveConflictError
        If `out` has other results.
    """
    settings = settings or ScoreSettings()
    names = [model.name for model in predictions]
    require_names(names)
    require_baseline(names, settings.composites.baseline)
    if settings.unusable is UnusableRule.LEAVE_OUT:
        raise CaseError(
            "expected a rule that allows ranking, but got leave-out: score each model separately, "
            "or choose a different rule"
        )
    pairs = [find_cases(reference, model.folder, settings.cases) for model in predictions]
    cohort = read_table(settings.clinical, settings.columns)
    models = ", ".join(f"{model.name}={model.folder.name}" for model in predictions)
    folders = (("reference", reference.name), ("predictions", models))
    read = (reference, *(model.folder for model in predictions))
    overwrite = existing is not Existing.REFUSE
    scored_models = []
    with claimed_folder(out, "score", (*folders, *settings.parameters), existing, read):
        for model, files in zip(predictions, pairs, strict=True):
            store = out / model.name / STORE_NAME
            scored = score_pairs(
                model.name, files, settings, cohort, place=place, store=store, existing=existing
            )
            scored_models.append(scored)
    report_progress(1, 1, "Comparing the models")
    comparison = compare_results([scored.model for scored in scored_models], settings.composites)
    for scored in scored_models:
        full_model = beside(scored.model, comparison)
        write_scores(full_model, out / full_model.name, overwrite=overwrite)
    write_comparison(comparison, out, overwrite=overwrite)
    lacks = write_score_report(scored_models, out, settings, comparison, overwrite=overwrite)
    summaries = tuple(
        ScoreSummary(s.model, out / s.model.name, s.looks.cases, warnings)
        for s, warnings in zip(scored_models, lacks, strict=True)
    )
    return ModelsSummary(summaries, comparison, out / COMPARISON)


def beside(model: ModelScores, comparison: ModelComparison) -> ModelScores:
    """Return a model with its composite scores, ranked as in the comparison."""
    composites = tuple(
        replace(
            composite, scores=tuple(score for score in composite.scores if score.name == model.name)
        )
        for composite in comparison.composites
    )
    return replace(model, composites=composites)


def require_names(names: Sequence[str]) -> None:
    """Raise `CaseError` unless all models have distinct names that are valid folder names."""
    keys = [case_key(file_name(name, "the name of a model")) for name in names]
    if len(set(keys)) < len(keys):
        raise CaseError(
            f"expected all models to have different names, but got {name_some(names)}: name the "
            "models with NAME=DIR"
        )


def require_baseline(names: Sequence[str], baseline: str) -> None:
    """Raise `CaseError` if the baseline is not one of the models."""
    if baseline and baseline not in names:
        raise CaseError(
            f"expected the baseline to be one of {name_some(names)}, but got {baseline!r}: choose "
            "one of these models, or also score that model"
        )
