"""Inspect the masks and images of a scored case to determine why it failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.errors import CaseError, GridMismatchError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.progress import report_progress, saying
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.io.data_set.volumes import (
    read_label_pair,
    read_phase_header,
    read_phase_into,
    read_series_into,
)
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.layouts.label_names import read_tumour
from napari_mamamia.metrics.lesions import LesionCounts, any_overlap_lesion_counts
from napari_mamamia.scoring.case import score
from napari_mamamia.scoring.case.failures import (
    THRESHOLDS,
    Enhancement,
    Failure,
    FailureKind,
    MatchedParts,
    contrast_to_noise,
    find_failures,
    match_parts,
)
from napari_mamamia.scoring.case.profiles import Profile
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.score.settings import ScoreSettings

Files = Mapping[str, tuple[Path | None, Path | None]]

LOOKED_AT: Final = (
    ScoreStatus.OK,
    ScoreStatus.PREDICTION_EMPTY,
    ScoreStatus.PREDICTION_MISSING,
    ScoreStatus.GRID_MISMATCH,
)
"""Statuses of the cases that have a reference, which are therefore inspected."""
_NO_IMAGES: Final = "Low contrast was not checked, because there is no data set with images."


@dataclass(frozen=True, slots=True)
class CaseInspection:
    """The findings of the inspection of one case.

    `lesions` is None if the masks are on different grids. `contrast` is the contrast-to-noise ratio
    of the reference, NaN if it is undefined or the case has no images (see `no_images`).
    """

    case_id: str
    failures: tuple[Failure, ...]
    lesions: LesionCounts | None
    contrast: float = float("nan")
    no_images: str = ""


@dataclass(frozen=True, slots=True)
class Looks:
    """The inspected cases, and a note about missing contrast checks, or "" if none is missing."""

    cases: tuple[CaseInspection, ...]
    note: str = ""


NO_LOOKS: Final = Looks(())
"""The empty result for a table of scores without masks."""


def look_at_case(
    case_id: str,
    masks: tuple[LabelMap, LabelMap | None],
    images: CaseFiles | None,
    profile: Profile,
    label: float | None,
    measured: score.MeasuredPair | None = None,
) -> CaseInspection:
    """Determine from its masks and images why a case failed.

    The second mask is None if there is no prediction. The first two phases of the images are read.
    `measured` has the measurements of the score; without it, the masks are measured here if the
    profile compares them.
    """
    reference, prediction = masks[0], masks[1] or score.nothing_on(masks[0].grid)
    prediction = score.laid_on(reference, prediction, profile)
    enhancement, no_images = None, "the data set does not contain the case"
    if images is not None:
        enhancement, no_images = _read_enhancement(images, reference.grid)
    mismatch = score.grid_problem(reference.grid, prediction.grid, profile)
    if not mismatch:
        measured = measured or score.measure_pair(reference, prediction, profile, label)
        both = match_parts(measured)
        pair, failures, lesions = (
            measured.pair,
            find_failures(both, enhancement),
            _count_lesions(both),
        )
    else:
        failures = (Failure(FailureKind.GEOMETRY_MISMATCH, mismatch),)
        if prediction.grid.shape != reference.grid.shape:
            return CaseInspection(case_id, failures, None, no_images=no_images)
        pair = score.pair_of(reference, prediction, profile, label)
        lesions = any_overlap_lesion_counts(pair.overlap_reference, pair.overlap_prediction)
    contrast = float("nan")
    if enhancement is not None:
        around = THRESHOLDS.surroundings_mm
        mask = pair.reference != 0
        contrast = contrast_to_noise(mask, pair.box, reference.grid, enhancement, around)
    return CaseInspection(case_id, failures, lesions, contrast, no_images)


def _count_lesions(both: MatchedParts) -> LesionCounts:
    pair = both.measured.pair
    reference, prediction = pair.overlap_reference, pair.overlap_prediction
    if (reference != (pair.reference != 0)).any() or (prediction != (pair.prediction != 0)).any():
        return any_overlap_lesion_counts(reference, prediction)
    n_found, n_true = int(both.found.sum()), int(both.true.sum())
    return LesionCounts(n_found, both.found.size - n_found, both.true.size - n_true)


def look_for_contrast(
    rows: Sequence[CaseScore],
    pairs: Files,
    settings: ScoreSettings,
    images: Sequence[CaseFiles],
) -> tuple[CaseInspection, ...]:
    """Inspect the scored cases with images for low contrast.

    A case that cannot be read is skipped.
    """
    by_key = {
        case_key(case_images.case_id): case_images
        for case_images in images
        if len(case_images.phases) > 1
    }
    case_ids = [row.case_id for row in rows if row.status in LOOKED_AT]

    def work(case_id: str) -> CaseInspection:
        report_progress(0, 1, "Checking for low contrast")
        masks = read_pair(pairs[case_id], settings.label, settings.profile)
        case_images = by_key[case_key(case_id)]
        return look_at_case(case_id, masks, case_images, settings.profile, settings.label_value)

    batch = for_each_case(
        [case_identifier for case_identifier in case_ids if case_key(case_identifier) in by_key],
        work,
    )
    return batch.results


def looks_of(cases: Sequence[CaseInspection], settings: ScoreSettings) -> Looks:
    """Return the inspections of a run with a note about missing contrast checks."""
    return Looks(tuple(cases), _describe_contrast(cases, settings))


def read_masks(
    files: tuple[Path | None, Path | None], label: float | str | None, profile: Profile
) -> tuple[LabelMap | None, LabelMap | None]:
    """Read reference and prediction on one grid.

    If a ``dataset.json`` names several labels, only the tumour counts, unless the profile has its
    own foreground.

    Raises
    ------
    FormatError
        If a file cannot be read.
    """
    zero_nonfinite = profile.takes_any_values
    if not profile.chooses_label:
        return read_label_pair(*files, label, zero_nonfinite=zero_nonfinite)
    reference, prediction = (
        None if path is None else read_tumour(path, label, zero_nonfinite=zero_nonfinite)
        for path in files
    )
    if reference is None or prediction is None:
        return reference, prediction
    return on_common_grid(reference, prediction)


def read_pair(
    files: tuple[Path | None, Path | None], label: float | str | None, profile: Profile
) -> tuple[LabelMap, LabelMap | None]:
    """Read both masks of a case with a reference.

    Raises
    ------
    CaseError
        If there is no reference.
    FormatError
        If a file cannot be read.
    """
    reference, prediction = read_masks(files, label, profile)
    if reference is None:
        raise CaseError(
            "expected the case to have a reference for the failure kind, but found none: add the "
            "reference of the case"
        )
    return reference, prediction


def _read_enhancement(files: CaseFiles, grid: Grid) -> tuple[Enhancement | None, str]:
    """Return the first two phases on the masks' grid, or None with the reason.

    If a file is damaged, a `FormatError` is raised, because the whole case is then unreliable.
    """
    if files.problems or len(files.phases) < 2:
        return None, "; ".join(
            files.problems
        ) or "the case has only one phase, so there is no enhancement"
    try:
        headers = [_read_header(files, index, grid) for index in (0, 1)]
    except GridMismatchError as error:
        return None, str(error)
    if files.is_series:
        both = np.empty((2, *grid.shape), dtype=headers[0].dtype)
        with saying("Reading phases 0 and 1"):
            read_series_into(files.phases[0].files[0], headers[0], both)
        return Enhancement(both[0], both[1]), ""
    before = _read_phase(files, 0, headers[0])
    return Enhancement(before, (_read_phase(files, 1, headers[1]))), ""


def _read_header(files: CaseFiles, index: int, grid: Grid) -> VolumeHeader:
    header = read_phase_header(files.phases[index])
    require_same_grid(header.grid, grid, f"phase {index} of {files.case_id}", "its reference")
    return header


def _read_phase(files: CaseFiles, index: int, header: VolumeHeader) -> NDArray[Any]:
    source = files.phases[index]
    out: NDArray[Any] = np.empty(header.grid.shape, dtype=header.dtype)
    with saying(f"Reading phase {index}"):
        read_phase_into(source, header, out)
    return out


def _describe_contrast(looks: Sequence[CaseInspection], settings: ScoreSettings) -> str:
    """Return a sentence that lists the cases not checked for low contrast."""
    if settings.images is None:
        return _NO_IMAGES
    without = [look for look in looks if look.no_images]
    if not without:
        return ""
    first = without[0]
    return (
        f"Low contrast was not checked in {len(without)} of {len(looks)} cases, such as "
        f"{first.case_id}: {first.no_images}."
    )
