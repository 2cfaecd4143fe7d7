"""Scoring: the masks on screen, or two folders of masks."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from napari_mamamia.core.case import Mask
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.io.layout import find_masks
from napari_mamamia.io.phase_files import case_key
from napari_mamamia.scoring.case_score import score_masks
from napari_mamamia.scoring.group_rules import rules_of
from napari_mamamia.scoring.model_results import segmentation_result
from napari_mamamia.scoring.performance import SegmentationScores
from napari_mamamia.scoring.results import ModelScores
from napari_mamamia.services.batch_store import STORE_NAME
from napari_mamamia.services.batch_work import Place
from napari_mamamia.services.clinical_table import described, matched, read_table
from napari_mamamia.services.output_folder import Existing, claim_folder
from napari_mamamia.services.score_cases import score_cases
from napari_mamamia.services.score_output import SCORE_TABLE, SUMMARY, write_scores
from napari_mamamia.services.score_report import REPORT, Scored, write_score_report
from napari_mamamia.services.score_settings import ScoreSettings

__all__ = [
    "Pairs",
    "ScoreSummary",
    "cohort_numbers",
    "find_pairs",
    "score_folders",
    "score_pair",
    "score_pairs",
]

Pairs: TypeAlias = dict[str, tuple[Path | None, Path | None]]
"""By case id, in order: the reference and the prediction, None where there is no file."""


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """What a scoring run found, and the folder it was written to."""

    model: ModelScores
    folder: Path

    @property
    def rows(self) -> tuple[CaseScore, ...]:
        """The cases in order of id."""
        return self.model.rows

    @property
    def table(self) -> Path:
        """The table of cases."""
        return self.folder / SCORE_TABLE

    @property
    def summary(self) -> Path:
        """The cohort's numbers."""
        return self.folder / SUMMARY

    @property
    def report(self) -> Path:
        """The page to read."""
        return self.folder / REPORT

    @property
    def all_ok(self) -> bool:
        """Whether every case, or row of a table, was scored as ok."""
        return not self.model.failures


def score_pair(case_id: str, reference: Mask, prediction: Mask) -> CaseScore:
    """Return the clinical scores of two masks in memory, such as those on screen."""
    return score_masks(case_id, reference, prediction)


def score_folders(
    reference: Path,
    prediction: Path,
    out: Path,
    settings: ScoreSettings | None = None,
    *,
    name: str = "",
    place: Place | None = None,
    existing: Existing = Existing.REFUSE,
) -> Job[ScoreSummary]:
    """Return a job that scores every case of either folder and writes tables and summary.

    Writes ``case_scores.csv``, ``.xlsx``, ``.parquet``, ``summary.json``, ``report.html`` and
    ``figures`` in `out`. A file that
    cannot be read costs one row. `name` is the model's (default: the prediction folder's), `place`
    where the cases are scored (default: this process). ``case_results.jsonl`` keeps each case as
    it is done; with RESUME only cases are scored whose files are new, changed or failed before.

    Raises
    ------
    FormatError
        If a folder is missing or holds no mask, or two files for one case, or the clinical table
        cannot be read.
    SaveConflictError
        If `out` holds other results.
    """
    settings = settings or ScoreSettings()
    pairs = find_pairs(reference, prediction)
    yield Progress(0, 1, "Reading the clinical table")
    cohort = read_table(settings.clinical)
    folders = (("reference", reference.name), ("prediction", prediction.name))
    claim_folder(out, "score", (*folders, *settings.parameters), existing)
    own_name, store = name or prediction.resolve().name, out / STORE_NAME
    model = yield from score_pairs(
        own_name, pairs, settings, cohort, place=place, store=store, existing=existing
    )
    replace = existing is not Existing.REFUSE
    yield from write_scores(model, out, overwrite=replace)
    yield from write_score_report([Scored(model, pairs)], out, settings, overwrite=replace)
    return ScoreSummary(model, out)


def find_pairs(reference: Path, prediction: Path) -> Pairs:
    """Return both files of every case of either folder; letter case does not part them.

    Raises
    ------
    FormatError
        If a folder is missing or holds no mask, or two files for one case.
    """
    folders = [_masks(reference), _masks(prediction)]
    ids = {case_key(case_id): case_id for masks in reversed(folders) for case_id in masks}
    by_key = [{case_key(case_id): path for case_id, path in masks.items()} for masks in folders]
    keys = sorted(ids, key=lambda key: ids[key])
    return {ids[key]: (by_key[0].get(key), by_key[1].get(key)) for key in keys}


def score_pairs(
    name: str,
    pairs: Pairs,
    settings: ScoreSettings,
    cohort: Cohort | None,
    *,
    place: Place | None = None,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
) -> Job[ModelScores]:
    """Return a job that scores all pairs of one model and computes the cohort's numbers.

    `place`, `store` and `existing` are those of `run_batch`.
    """
    rows = yield from _score_cases(pairs, settings, place, store, existing)
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK
    )
    return (yield from cohort_numbers(name, rows, failures, len(rows), settings, cohort))


def cohort_numbers(
    name: str,
    rows: tuple[CaseScore, ...],
    failures: tuple[CaseFailure, ...],
    n_cases: int,
    settings: ScoreSettings,
    cohort: Cohort | None,
) -> Job[ModelScores]:
    """Return a job for the cohort's numbers of cases that were scored already.

    `failures` go into the result as they are, `n_cases` counts cases without a row too.
    """
    scored = [row for row in rows if not (np.isnan(row.dsc) and np.isnan(row.norm_hd))]
    scores = SegmentationScores.of((row.case_id, row.dsc, row.norm_hd) for row in scored)
    volumes = np.array([row.volume_reference_mm3 for row in scored], dtype=np.float64)
    own = matched([row.case_id for row in rows], cohort) if cohort else None
    rules = rules_of(settings.profile.name)
    result = yield from segmentation_result(scores, own, rules, settings.resampling, volumes)
    return ModelScores(
        name=name,
        profile=settings.profile.name,
        n_cases=n_cases,
        n_scored=len(scored),
        rows=rows,
        failures=failures,
        segmentation=result,
        response=None,
        clinical=described(settings.clinical, cohort, own),
        resampling=settings.resampling,
        cohort=own,
    )


def _score_cases(
    pairs: Pairs,
    settings: ScoreSettings,
    place: Place | None,
    store: Path | None,
    existing: Existing,
) -> Job[tuple[CaseScore, ...]]:
    """Return a job that gives one row for each pair, in order, whatever happens to it."""
    definitions = (settings.profile, settings.label)
    batch = yield from score_cases(pairs, *definitions, place, store=store, existing=existing)
    rows = {row.case_id: row for row in batch.results}
    for failure in batch.failures:
        rows[failure.case_id] = _unreadable(failure.case_id, failure.reason, settings)
    return tuple(rows[case_id] for case_id in pairs)


def _unreadable(case_id: str, reason: str, settings: ScoreSettings) -> CaseScore:
    return CaseScore(case_id, ScoreStatus.UNREADABLE, profile=settings.profile.name, reason=reason)


def _masks(folder: Path) -> dict[str, Path]:
    found = dict(find_masks(folder))
    if not found:
        raise FormatError(
            f"{folder} holds no mask: expected files such as ID.nii.gz, ID.nii or ID.nrrd"
        )
    return found
