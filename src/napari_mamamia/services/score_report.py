"""The report of a scoring run: why cases failed, pictures of the worst, page and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.io.provenance import read_provenance, sidecar_path
from napari_mamamia.io.volumes import read_labels
from napari_mamamia.metrics.lesions import LesionCounts, lesion_counts
from napari_mamamia.scoring.failure_kinds import Failure
from napari_mamamia.scoring.failures import failures_of_labels
from napari_mamamia.scoring.gallery import CasePicture, picture_of, worst_cases
from napari_mamamia.scoring.pair import pair_of
from napari_mamamia.scoring.report import write_report
from napari_mamamia.scoring.report_content import CaseColumn, ModelReport, ReportContent, report_of
from napari_mamamia.scoring.report_figures import write_figures
from napari_mamamia.scoring.results import ModelComparison, ModelScores
from napari_mamamia.services.batch import for_each_case
from napari_mamamia.services.score_settings import ScoreSettings

__all__ = ["FIGURES", "REPORT", "Scored", "write_score_report"]

REPORT: Final = "report.html"
FIGURES: Final = "figures"

_COMPARED: Final = (ScoreStatus.OK, ScoreStatus.PREDICTION_EMPTY, ScoreStatus.PREDICTION_MISSING)


@dataclass(frozen=True, slots=True)
class Scored:
    """One model's scores and, where there are images, the files (reference, prediction) by case."""

    model: ModelScores
    pairs: Mapping[str, tuple[Path | None, Path | None]] | None = None


def write_score_report(
    scored: Sequence[Scored],
    out: Path,
    settings: ScoreSettings,
    comparison: ModelComparison | None = None,
    *,
    overwrite: bool = False,
) -> Job[Path]:
    """Return a job that writes ``report.html`` and the folder ``figures``: the report's path.

    The masks are read once more: for the failure kinds of every case that has a reference, and for
    pictures of the worst cases. A mask that cannot be read now has neither.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    parts: list[ModelReport] = []
    for item in scored:
        parts.append((yield from _part(item, settings)))
    content = ReportContent(tuple(parts), comparison=comparison)
    path = yield from write_report(content, out / REPORT, overwrite=overwrite)
    yield from write_figures(content, out / FIGURES, overwrite=overwrite)
    return path


def _part(item: Scored, settings: ScoreSettings) -> Job[ModelReport]:
    model, pairs = item.model, item.pairs
    if pairs is None:
        return (yield from report_of(model, model.cohort))
    known = [row.case_id for row in model.rows if row.status in _COMPARED]
    looks = yield from _looks(known, pairs, settings)
    failures = {look.case_id: look.failures for look in looks}
    pictures: list[CasePicture] = []
    worst = worst_cases([row for row in model.rows if row.status in _COMPARED])
    for done, case_id in enumerate(worst):
        yield Progress(done, len(worst), f"Picture of {case_id}")
        pictures += _picture(model.name, case_id, pairs[case_id], settings)
    return (yield from report_of(model, model.cohort, failures, pictures, _columns(looks)))


@dataclass(frozen=True, slots=True)
class _Look:
    """What a second look at one case's masks finds; `seconds` None where no provenance says it."""

    case_id: str
    failures: tuple[Failure, ...]
    lesions: LesionCounts
    seconds: float | None


def _looks(
    case_ids: Sequence[str],
    pairs: Mapping[str, tuple[Path | None, Path | None]],
    settings: ScoreSettings,
) -> Job[tuple[_Look, ...]]:
    """Return a job that looks at every case that has a reference; one that fails has no look."""

    def work(case_id: str) -> Job[_Look]:
        yield Progress(0, 1, "Looking for the kind of failure")
        reference, prediction = _labels(pairs[case_id])
        return _Look(
            case_id,
            failures_of_labels(reference, prediction, settings.profile, settings.label),
            _lesions(reference, prediction, settings),
            _seconds(pairs[case_id][1]),
        )

    batch = yield from for_each_case(case_ids, work)
    return batch.results


def _lesions(
    reference: LabelMap, prediction: LabelMap | None, settings: ScoreSettings
) -> LesionCounts:
    """Return the lesions found, missed and false; a missing prediction misses them all."""
    if prediction is None:
        prediction = LabelMap(reference.grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))
    pair = pair_of(reference, prediction, settings.profile, settings.label)
    return lesion_counts(pair.overlap_reference, pair.overlap_prediction)


def _seconds(prediction: Path | None) -> float | None:
    """Return how long the prediction took, as its provenance says."""
    if prediction is None or not sidecar_path(prediction).exists():
        return None
    try:
        return read_provenance(sidecar_path(prediction)).seconds
    except MamamiaError:
        return None


def _columns(looks: Sequence[_Look]) -> tuple[CaseColumn, ...]:
    """Return the columns that stand beside the voxel metrics in the case table."""
    counts = tuple(
        CaseColumn(
            f"lesions_{kind}",
            f"Lesions {kind}",
            {look.case_id: getattr(look.lesions, kind) for look in looks},
        )
        for kind in ("found", "missed", "false")
    )
    times = {look.case_id: look.seconds for look in looks if look.seconds is not None}
    if not times:
        return counts
    return (*counts, CaseColumn("seconds", "Prediction took", times, "s", 1))


def _labels(files: tuple[Path | None, Path | None]) -> tuple[LabelMap, LabelMap | None]:
    reference, prediction = files
    if reference is None:
        raise ValueError("a case without a reference has no failure kind")
    return read_labels(reference), read_labels(prediction) if prediction else None


def _picture(
    model: str, case_id: str, files: tuple[Path | None, Path | None], settings: ScoreSettings
) -> list[CasePicture]:
    """Return the picture of one case, none where its masks cannot be read or compared any more."""
    try:
        reference, prediction = _labels(files)
        if prediction is None:
            return []
        # one grid for both: official-code compares arrays of equal shape whatever their affine
        shown = LabelMap(reference.grid, prediction.box, prediction.crop)
        masks = (reference.mask(settings.label), shown.mask(settings.label))
        return [picture_of(case_id, *masks, model=model)]
    except MamamiaError:
        return []
