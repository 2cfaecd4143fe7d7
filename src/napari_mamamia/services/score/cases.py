"""Scoring many cases from their files: the work of one case, and the batch of all."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.scoring.case.profiles import CLINICAL, Profile
from napari_mamamia.scoring.case.score import score_label_maps
from napari_mamamia.services.batch.batch import BatchResult, run_batch
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import CaseInputs, CaseWork, Place
from napari_mamamia.services.score.looks import LOOKED_AT, CaseLook, look_at_case

__all__ = [
    "CaseSettings",
    "ScoredCase",
    "score_and_look",
    "score_cases",
    "score_files",
]


NO_IMAGES: Final[Mapping[str, CaseFiles]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CaseSettings:
    """Everything that a case's score depends on besides its two files."""

    profile: Profile
    label: float | None = None


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A case's score and why it failed; no look where there is no reference to look at."""

    score: CaseScore
    look: CaseLook | None = None


def score_files(inputs: CaseInputs, settings: CaseSettings) -> CaseScore:
    """Return the score of one case from its reference and prediction file, either may be None.

    Raises
    ------
    FormatError
        If a file cannot be read.
    ValueError
        If both files are None.
    """
    reference, prediction = (read_labels(path) if path else None for path in inputs.files[:2])
    return score_label_maps(inputs.case_id, reference, prediction, settings.profile, settings.label)


def score_and_look(inputs: CaseInputs, settings: CaseSettings) -> Job[ScoredCase]:
    """Return a job for the score of one case and why it failed; each mask is read once.

    `inputs.about` are the case's `CaseFiles` where there are images of it. Errors as in
    `score_files`, and `FormatError` if an image that was given is damaged; what else cannot be
    looked at costs the look alone.
    """
    yield Progress(0, 2, "Reading the masks")
    reference, prediction = (read_labels(path) if path else None for path in inputs.files[:2])
    profile, label = settings.profile, settings.label
    score = score_label_maps(inputs.case_id, reference, prediction, profile, label)
    if reference is None or score.status not in LOOKED_AT:
        return ScoredCase(score)
    yield Progress(1, 2, "Looking for the kind of failure")
    masks, images = (reference, prediction), inputs.about
    try:
        look = yield from look_at_case(inputs.case_id, masks, images, profile, label)
    except FormatError:
        raise
    except MamamiaError:
        return ScoredCase(score)
    return ScoredCase(score, look)


def score_cases(
    pairs: Mapping[str, tuple[Path | None, Path | None]],
    profile: Profile = CLINICAL,
    label: float | None = None,
    place: Place | None = None,
    *,
    images: Mapping[str, CaseFiles] = NO_IMAGES,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
) -> Job[BatchResult[ScoredCase]]:
    """Return a job that scores every pair (reference, prediction) of files, by case id.

    `label` is the one label to score, for a profile that lets the user choose. `images` are those
    of a case by `case_key` of its id, for what only images tell of a failure.

    A file that cannot be read, and a case over the time limit of `place`, is a failure of its
    case. `store` and `existing` are those of `run_batch`.

    Raises
    ------
    SaveConflictError, SaveError, MissingExtraError
        As `run_batch`.
    """
    cases = [
        _inputs(case_id, files, images.get(case_key(case_id))) for case_id, files in pairs.items()
    ]
    work = CaseWork("score", score_and_look, CaseSettings(profile, label), ScoredCase)
    return run_batch(cases, work, place, store=store, existing=existing)


def _inputs(
    case_id: str, masks: tuple[Path | None, Path | None], images: CaseFiles | None
) -> CaseInputs:
    """Return a case's masks and the files of the two phases that are looked at.

    An image that cannot be read costs no score: it is no file that the case depends on.
    """
    phases = images.phases[:2] if images is not None else ()
    further = [path for phase in phases for path in phase.files if os.access(path, os.R_OK)]
    absolute = tuple(path and path.absolute() for path in masks)
    return CaseInputs(case_id, (*absolute, *dict.fromkeys(further)), images)
