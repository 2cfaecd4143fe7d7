"""Scoring many cases from their files: the work of one case, and the batch of all."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.progress import Job
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.volumes import read_labels
from napari_mamamia.scoring.case_score import score_label_maps
from napari_mamamia.scoring.profiles import CLINICAL, Profile
from napari_mamamia.services.batch import BatchResult, run_batch
from napari_mamamia.services.batch_work import CaseInputs, CaseWork, Place
from napari_mamamia.services.output_folder import Existing

__all__ = ["CaseSettings", "score_cases", "score_files"]


@dataclass(frozen=True, slots=True)
class CaseSettings:
    """Everything that a case's score depends on besides its two files."""

    profile: Profile
    label: float | None = None


def score_files(inputs: CaseInputs, settings: CaseSettings) -> CaseScore:
    """Return the score of one case from its reference and prediction file, either may be None.

    Raises
    ------
    FormatError
        If a file cannot be read.
    ValueError
        If both files are None.
    """
    reference, prediction = (read_labels(path) if path else None for path in inputs.files)
    return score_label_maps(inputs.case_id, reference, prediction, settings.profile, settings.label)


def score_cases(
    pairs: Mapping[str, tuple[Path | None, Path | None]],
    profile: Profile = CLINICAL,
    label: float | None = None,
    place: Place | None = None,
    *,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
) -> Job[BatchResult[CaseScore]]:
    """Return a job that scores every pair (reference, prediction) of files, by case id.

    `label` is the one label to score, for a profile that lets the user choose.

    A file that cannot be read, and a case over the time limit of `place`, is a failure of its
    case. `store` and `existing` are those of `run_batch`.

    Raises
    ------
    SaveConflictError, SaveError, MissingExtraError
        As `run_batch`.
    """
    cases = [
        CaseInputs(case_id, tuple(path and path.absolute() for path in files))
        for case_id, files in pairs.items()
    ]
    work = CaseWork("score", score_files, CaseSettings(profile, label), CaseScore)
    return run_batch(cases, work, place, store=store, existing=existing)
