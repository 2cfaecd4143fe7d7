"""Score lesion detection: lesions found, false boxes, and the metrics derived from them."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.classifiers.scoring.detection.detection import (
    score_detection as numbers_of,
)
from napari_mamamia.features.classifiers.scoring.detection.report import write_detection_page
from napari_mamamia.features.classifiers.scoring.detection.results import (
    DetectionResult,
    DetectionSettings,
)
from napari_mamamia.features.classifiers.services.detection import inputs
from napari_mamamia.features.classifiers.services.detection.output import write_detection
from napari_mamamia.services.batch.in_subprocess import drawing_place
from napari_mamamia.services.batch.output_folder import Existing, claim_folder


@dataclass(frozen=True, slots=True, eq=False)
class DetectionSummary:
    """The results of a detection run, and the folder to which they were written.

    `failures` lists rows and files that could not be read; `warnings` are notes on unusual input.
    """

    result: DetectionResult
    folder: Path
    failures: tuple[CaseFailure, ...]
    warnings: tuple[str, ...]


def score_detection(
    source: inputs.DetectionTables | inputs.DetectionMasks,
    out: Path,
    settings: DetectionSettings | None = None,
    *,
    existing: Existing = Existing.REFUSE,
) -> DetectionSummary:
    """Score predicted boxes, or components of predicted masks, and write the results to `out`.

    The files are ``detection.json``, ``lesions.csv``, ``boxes.csv``, ``curve.csv`` and
    ``report.html``, with the folder ``figures``.

    Parameters
    ----------
    source
        Tables of boxes or folders of masks.
    out
        Output folder.
    settings
        Settings of the run; None for the defaults.
    existing
        What to do with other results in `out`.

    Raises
    ------
    FormatError
        If a table or folder cannot be read, or its reference is invalid.
    SaveConflictError
        If `out` contains other results.
    """
    settings = settings or DetectionSettings()
    read = read_detection(source, settings)
    _claim_folder(source, settings, out, existing)
    return _write_results(source, read, numbers_of(read.data, settings), out, existing)


def save_detection(
    source: inputs.DetectionTables | inputs.DetectionMasks,
    read: inputs.ReadDetection,
    result: DetectionResult,
    out: Path,
    *,
    existing: Existing = Existing.REFUSE,
) -> DetectionSummary:
    """Write results that were already computed to `out`, as `score_detection` does.

    Parameters
    ----------
    source
        The inputs.
    read
        The content of the inputs.
    result
        The numbers.
    out
        Output folder.
    existing
        What to do with other results in `out`.
    """
    _claim_folder(source, result.settings, out, existing)
    return _write_results(source, read, result, out, existing)


def _claim_folder(
    source: inputs.DetectionTables | inputs.DetectionMasks,
    settings: DetectionSettings,
    out: Path,
    existing: Existing,
) -> None:
    folders = source.folders if isinstance(source, inputs.DetectionMasks) else ()
    parameters = (*source.parameters, *settings.parameters)
    claim_folder(out, "score-detection", parameters, existing, folders)


def _write_results(
    source: inputs.DetectionTables | inputs.DetectionMasks,
    read: inputs.ReadDetection,
    result: DetectionResult,
    out: Path,
    existing: Existing,
) -> DetectionSummary:
    replace = existing is not Existing.REFUSE
    write_detection(result, read.failures, read.warnings, out, overwrite=replace)
    warnings, name = (*read.warnings, *result.warnings), _name_of(source)
    with drawing_place() as draw:
        write_detection_page(
            result, name, out, read.failures, warnings, overwrite=replace, draw=draw
        )
    return DetectionSummary(result, out, read.failures, warnings)


def read_detection(
    source: inputs.DetectionTables | inputs.DetectionMasks, settings: DetectionSettings
) -> inputs.ReadDetection:
    """Read all cases from tables or folders; the errors are those of `score_detection`."""
    if isinstance(source, inputs.DetectionTables):
        return inputs.read_tables(source)
    return inputs.read_masks(source, settings.rule.matching)


def _name_of(source: inputs.DetectionTables | inputs.DetectionMasks) -> str:
    if isinstance(source, inputs.DetectionTables):
        return source.predictions.stem
    return source.prediction.resolve().name
