"""Score folders of masks, or masks in memory, and compute the cohort's metrics."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import FormatError, MamamiaError, NotFiniteError, Remedy
from napari_mamamia.core.grid import IDENTITY_WARNING, IMPOSSIBLE_SPACING
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import gc_frozen, paced, report_progress
from napari_mamamia.core.records import CaseFailure, CaseScore, FailureCause, ScoreStatus
from napari_mamamia.io.data_set.case_list import CaseList
from napari_mamamia.io.data_set.mask_files import MaskListing, bare_id, list_masks, no_mask_error
from napari_mamamia.io.data_set.volumes import (
    NONFINITE_AS_ZERO,
    files_of_volume,
    read_labels,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import alike_ids, case_key
from napari_mamamia.io.files.headers import FORMS_WARNING, UNIT_WARNING
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.layouts.known import find_own_label
from napari_mamamia.io.layouts.label_names import (
    find_names_file,
    find_tumour_label,
    read_tumour,
)
from napari_mamamia.io.workspace.place import find_workspace
from napari_mamamia.io.workspace.preferences import load_preferences
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.scoring.case.profiles import CLINICAL, Profile
from napari_mamamia.scoring.case.score import (
    AFFINE_DIFFERS,
    ON_REFERENCE,
    OTHER_VALUES,
    PREDICTION_IDENTITY,
    score_and_measure,
    sizes_of_reference,
)
from napari_mamamia.scoring.cohort.groups import rules_of
from napari_mamamia.scoring.cohort.model_results import (
    CaseSizes,
    segmentation_result,
    with_composites,
)
from napari_mamamia.scoring.cohort.policy import count_cases
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.scoring.statistics.performance import SegmentationScores
from napari_mamamia.services.batch.batch import BatchResult, run_batch
from napari_mamamia.services.batch.output_folder import Existing, claimed_folder
from napari_mamamia.services.batch.work import STORE_NAME, CaseInputs, CaseWork, Place
from napari_mamamia.services.score.case_tags import joined_tags, split_tags, tags_of
from napari_mamamia.services.score.clinical_table import described, matched, read_table
from napari_mamamia.services.score.inspections import (
    LOOKED_AT,
    CaseInspection,
    look_at_case,
    looks_of,
    read_masks,
)
from napari_mamamia.services.score.output import SCORE_TABLE, SUMMARY, write_scores
from napari_mamamia.services.score.report import REPORT, Scored, write_score_report
from napari_mamamia.services.score.settings import ScoreSettings

Pairs: TypeAlias = dict[str, tuple[Path | None, Path | None]]
"""Reference and prediction by case id, in order; None stands for a missing file."""
# The scoring of one case from its files, and the batch of all cases.

NO_IMAGES: Final[Mapping[str, CaseFiles]] = MappingProxyType({})
MaskPairs: TypeAlias = Mapping[str, tuple[LabelMap | None, LabelMap | None]]
"""Reference and prediction by case id; None stands for a missing mask."""


@gc_frozen()
def with_facts(
    rows: Sequence[CaseScore],
    predictions: Mapping[str, Path | None],
    tags: Mapping[str, Sequence[str]],
) -> tuple[CaseScore, ...]:
    """Return the rows with the time, device and memory of each prediction, and with the tags.

    `predictions` are the mask files by case id. Without a readable provenance file, the values are
    unknown.
    """
    full_rows: list[CaseScore] = []
    for row in paced(rows, "Reading the cost of the predictions", len(rows)):
        facts = _read_cost(predictions.get(row.case_id))
        row_tags = tags.get(row.case_id)
        if row_tags:
            facts["tags"] = joined_tags(row_tags)
        full_rows.append(replace(row, **facts) if facts else row)
    return tuple(full_rows)


def tags_for(case_ids: Sequence[str], settings: ScoreSettings) -> Mapping[str, tuple[str, ...]]:
    """Return the tags of the cases in the run's workspace, or {} without a workspace.

    Raises
    ------
    FormatError
        If the tags of the workspace cannot be read.
    """
    root = settings.workspace
    if root is None and settings.images is not None:
        root = find_workspace(find_data_set(settings.images), load_preferences()).root
    return tags_of(Workspace(root), case_ids) if root is not None else {}


def _read_cost(prediction: Path | None) -> dict[str, Any]:
    """Return the costs recorded in a mask's provenance, or {} if there is no provenance."""
    if prediction is None or not sidecar_path(prediction).exists():
        return {}
    try:
        provenance = read_provenance(sidecar_path(prediction))
    except MamamiaError:
        return {}
    costs = (
        ("prediction_seconds", provenance.seconds),
        ("peak_memory_bytes", provenance.peak_memory_bytes),
        ("device", provenance.device),
    )
    return {name: value for name, value in costs if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """The files of each case, and the cases that are known to be unusable without being read.

    `problems` has the status and the reason for these cases. `outside` has the ids of files that
    are not in the list of cases and are not scored.
    """

    pairs: Pairs
    problems: Mapping[str, tuple[ScoreStatus, str]] = field(default_factory=dict)
    outside: tuple[str, ...] = ()


def find_pairs(reference: Path, prediction: Path, cases: CaseList | None = None) -> Pairs:
    """Return the reference and the prediction of every case; see `find_cases`."""
    return find_cases(reference, prediction, cases).pairs


def has_references_as_predictions(pairs: Pairs) -> bool:
    """Return whether the predictions are the reference files, judged by the first case."""
    complete = [files for files in pairs.values() if None not in files]
    return any(len({path.resolve() for path in files if path}) == 1 for files in complete[:1])


def is_reference_folder(reference: Path, prediction: Path) -> bool:
    """Return whether the prediction folder contains the reference masks themselves.

    Raises
    ------
    FormatError
        As `find_cases`.
    """
    is_inside = prediction.resolve().is_relative_to(reference.resolve())
    return is_inside and has_references_as_predictions(find_pairs(reference, prediction))


def _list_ids(own: MaskListing, other: MaskListing) -> list[str]:
    """Return the ids in the folder `other`, spelled as in `own` if both folders have them."""
    spelled = {case_key(case_id): case_id for case_id in own.masks}
    ids = (*other.masks, *other.problems, *map(bare_id, other.masks))
    return [spelled.get(case_key(case_id), case_id) for case_id in ids]


def find_cases(reference: Path, prediction: Path, cases: CaseList | None = None) -> FoundPairs:
    """Return the reference and prediction of every case in either folder, ignoring letter case.

    `reference` is a folder of masks, or a data set whose references are used. With a list of
    `cases`, only these cases count, and each must have its reference.

    Raises
    ------
    FormatError
        If a folder is missing, the reference folder has no mask, no case has both files and there
        is no list of cases, or a listed case has no reference or a different reference.
    """
    references = _references_of_data_set(reference)
    if references is not None:
        folders = [references, list_masks(prediction, tuple(references.masks))]
    elif cases is not None:
        folders = [list_masks(folder, cases.case_ids) for folder in (reference, prediction)]
    else:
        folders = [list_masks(reference), list_masks(prediction)]
        if folders[0].masks.keys() != folders[1].masks.keys():
            # Each folder is searched for the ids of the other folder, which may have simpler
            # names.
            folders = [
                list_masks(folder, _list_ids(own, other))
                for folder, own, other in zip(
                    (reference, prediction), folders, reversed(folders), strict=True
                )
            ]
    if folders[0].is_empty:
        raise no_mask_error(reference)
    if folders[1].is_empty and cases is None:
        raise no_mask_error(prediction)
    everything = join_listings(*folders)
    if cases is None:
        _require_common_case(folders[0], folders[1], everything)
    return everything if cases is None else keep_listed(everything, cases, reference)


def _references_of_data_set(folder: Path) -> MaskListing | None:
    """Return the references of a data set, or None for a folder of masks or an unknown layout."""
    if not list_masks(folder).is_empty:
        return None
    try:
        data_set = find_data_set(folder)
    except MamamiaError:
        return None
    masks = {case.case_id: case.reference for case in data_set.cases if case.reference is not None}
    return MaskListing(masks) if masks else None


def _require_common_case(
    reference: MaskListing, prediction: MaskListing, files: FoundPairs
) -> None:
    """Raise `FormatError` if no case has both files, which means that the names differ."""
    if files.problems or any(expert and mask for expert, mask in files.pairs.values()):
        return
    named = [name_some([*map(repr, listing.masks)], 3) for listing in (reference, prediction)]
    lost = "; the ids may have lost leading zeros" if find_lost_zeros(files.pairs) else ""
    raise FormatError(
        "expected both folders to have masks of the same cases, but no case has both masks: the "
        f"references are for {named[0]}, the predictions for {named[1]}{lost}; use the same names "
        "in both folders, or use the data set itself as the reference"
    )


def join_listings(reference: MaskListing, prediction: MaskListing) -> FoundPairs:
    """Return both files of every case in either listing; ids are spelled as in the reference."""
    ids = {
        case_key(case_id): case_id
        for listing in (prediction, reference)
        for case_id in (*listing.others, *listing.problems, *listing.masks)
    }
    experts, models = reference.by_key(), prediction.by_key()
    reasons = (
        (ScoreStatus.UNREADABLE, models.others),
        (ScoreStatus.SEVERAL_FILES, models.problems),
        (ScoreStatus.REFERENCE_UNREADABLE, {**experts.others, **experts.problems}),
    )
    problems = {
        ids[key]: (status, reason) for status, found in reasons for key, reason in found.items()
    }
    keys = sorted(ids, key=lambda key: ids[key])
    pairs = {ids[key]: (experts.masks.get(key), models.masks.get(key)) for key in keys}
    return FoundPairs(pairs, problems)


def find_lost_zeros(pairs: Pairs) -> dict[str, str]:
    """Return hints on missing predictions that may exist under a different spelling of the id."""
    reasons = {}
    for names in alike_ids(pairs):
        lacking = [name for name in names if pairs[name][0] and not pairs[name][1]]
        others = [name for name in names if pairs[name][1] and not pairs[name][0]]
        for name in (*lacking, *others) if lacking and others else ():
            other = (others if name in lacking else lacking)[0]
            reasons[name] = (
                f"but {other} has a file: the ids may have lost leading zeros, or differ by "
                "blanks; use the same name for both files if they belong to one case"
            )
    return reasons


def keep_listed(files: FoundPairs, cases: CaseList, reference: Path) -> FoundPairs:
    """Return the files of listed cases, each of which must have its reference in `reference`.

    Raises
    ------
    FormatError
        If a listed case has no reference, or a different one.
    """
    references = {case_key(name): path for name, (path, _) in files.pairs.items() if path}
    _require_references(cases, references, reference)
    outside = tuple(sorted(name for name in files.pairs if name not in cases))
    pairs = {name: pair for name, pair in files.pairs.items() if name in cases}
    problems = {name: problem for name, problem in files.problems.items() if name in cases}
    return FoundPairs(pairs, problems, outside)


def _require_references(cases: CaseList, references: Mapping[str, Path], folder: Path) -> None:
    """Raise `FormatError` unless every listed case has the reference recorded in the list."""
    lacking = [case_id for case_id in cases.case_ids if case_key(case_id) not in references]
    if lacking:
        first = ", ".join(lacking[:3]) + ", ..." * (len(lacking) > 3)
        raise FormatError(
            f"expected {folder} to have a reference for each case in {cases.name}, but "
            f"{len(lacking)} of {len(cases.case_ids)} cases have none ({first}): choose the "
            "folder from which the list was made"
        )
    for number, (case_id, digest) in enumerate(zip(cases.case_ids, cases.digests, strict=True)):
        report_progress(number, len(cases.case_ids), "Comparing the references with the list")
        path = references[case_key(case_id)]
        if digest and sha256_of(path) != digest:
            raise FormatError(
                f"expected the reference {path} to have the SHA-256 recorded in {cases.name}, but "
                "it differs: choose the folder from which the list was made"
            )


@dataclass(frozen=True, slots=True)
class CaseSettings:
    """All settings that affect a case's score, in addition to its two files."""

    profile: Profile
    label: float | str | None = None


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """The score of a case and its inspection, which is None if there is no reference."""

    score: CaseScore
    look: CaseInspection | None = None


def score_and_inspect(inputs: CaseInputs, settings: CaseSettings) -> ScoredCase:
    """Return the score and the inspection of a case; each mask is read once.

    `inputs.about` has the `CaseFiles` of a case with images. If images have a problem other than
    damage, only the inspection for low contrast is missing.

    Raises
    ------
    FormatError
        If a mask cannot be read, or an image is damaged.
    ValueError
        If both masks are None.
    """
    report_progress(0, 2, "Reading the masks")
    masks, label = _read_masks(inputs, settings)
    return score_and_inspect_at(inputs.case_id, masks, settings.profile, label, inputs.about)


def _read_masks(
    inputs: CaseInputs, settings: CaseSettings
) -> tuple[tuple[LabelMap | None, LabelMap | None], float | None]:
    """Return both masks on one grid, and the tumour value (1 for a named segment)."""
    masks = read_masks((inputs.files[0], inputs.files[1]), settings.label, settings.profile)
    return masks, None if isinstance(settings.label, str) else settings.label


def score_and_inspect_at(
    case_id: str,
    masks: tuple[LabelMap | None, LabelMap | None],
    profile: Profile = CLINICAL,
    label: float | None = None,
    images: CaseFiles | None = None,
) -> ScoredCase:
    """Return the score and the inspection of masks in memory; see `score_and_inspect`."""
    reference, prediction = masks
    score, measured = score_and_measure(case_id, reference, prediction, profile, label)
    if reference is None or score.status not in LOOKED_AT:
        return ScoredCase(score)
    report_progress(1, 2, "Finding the failure kinds")
    try:
        look = look_at_case(case_id, (reference, prediction), images, profile, label, measured)
    except FormatError:
        raise
    except MamamiaError:
        return ScoredCase(score)
    return ScoredCase(score, look)


def score_cases(
    pairs: Mapping[str, tuple[Path | None, Path | None]],
    profile: Profile = CLINICAL,
    label: float | str | None = None,
    place: Place | None = None,
    *,
    images: Mapping[str, CaseFiles] = NO_IMAGES,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
) -> BatchResult[ScoredCase]:
    """Score every pair (reference, prediction) of files, by case id.

    `label` is the label to score, or the name of its segment, for a profile that allows this
    choice. `images` has the files of each case by the `case_key` of its id, for failure kinds that
    need images.

    If a file cannot be read, or a case exceeds the time limit of `place`, only this case fails.
    `store` and `existing` are as in `run_batch`.

    Raises
    ------
    SaveConflictError, SaveError, MissingExtraError
        As in `run_batch`.
    """
    cases = [
        _collect_inputs(case_id, files, images.get(case_key(case_id)))
        for case_id, files in pairs.items()
    ]
    work = CaseWork("score", score_and_inspect, CaseSettings(profile, label), ScoredCase)
    return run_batch(cases, work, place, store=store, existing=existing)


def _collect_inputs(
    case_id: str, masks: tuple[Path | None, Path | None], images: CaseFiles | None
) -> CaseInputs:
    """Return a case's masks and the files of its first two phases.

    An image that cannot be read is ignored, because the case's score does not depend on it.
    """
    phases = images.phases[:2] if images is not None else ()
    further = [path for phase in phases for path in phase.files if os.access(path, os.R_OK)]
    absolute = tuple(path and path.absolute() for path in masks)
    apart = [file for path in absolute if path for file in files_of_volume(path)[1:]]
    return CaseInputs(case_id, (*absolute, *dict.fromkeys([*apart, *further])), images)


_SEE_WARNING: Final = "see the column warning"
_OF_MANY: Final = MappingProxyType(
    {
        AFFINE_DIFFERS: (
            "the affines of prediction and reference differ, which this profile ignores; "
            f"{ON_REFERENCE}; {_SEE_WARNING}"
        ),
        PREDICTION_IDENTITY: (
            "the prediction's grid is an identity (1 x 1 x 1 mm), as in files "
            "that lost their spacing"
        ),
        IDENTITY_WARNING: IDENTITY_WARNING,
        IMPOSSIBLE_SPACING: f"{IMPOSSIBLE_SPACING}; {_SEE_WARNING}",
        FORMS_WARNING: (f"sform and qform of a mask differ, and the sform is used; {_SEE_WARNING}"),
        NONFINITE_AS_ZERO: f"a mask {NONFINITE_AS_ZERO}, as SimpleITK reads them from NIfTI",
        UNIT_WARNING: (
            "lengths in the header are not in mm; the column warning states whether "
            "they are converted"
        ),
    }
)
"""Fragments of case warnings, and the cohort note for the cases that have such a warning."""
_TAKING: Final = "Collecting the scores of the cases"

_STATUS: Final = MappingProxyType(
    {
        FailureCause.ERROR: ScoreStatus.UNREADABLE,
        FailureCause.TIME_LIMIT: ScoreStatus.TIME_LIMIT,
        FailureCause.WORKER_LOST: ScoreStatus.WORKER_LOST,
    }
)


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """The results of a scoring run, and the folder to which they were written.

    `looks` has the inspections of cases with a reference; `warnings` lists gaps in the report.
    """

    model: ModelScores
    folder: Path
    looks: tuple[CaseInspection, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[CaseScore, ...]:
        """The cases in order of id."""
        return self.model.rows

    @property
    def table(self) -> Path:
        """The path of the table of cases."""
        return self.folder / SCORE_TABLE

    @property
    def summary(self) -> Path:
        """The path of the summary with the cohort's metrics."""
        return self.folder / SUMMARY

    @property
    def report(self) -> Path:
        """The path of the report page."""
        return self.folder / REPORT

    @property
    def all_ok(self) -> bool:
        """Whether every case or table row was scored."""
        return self.model.all_ok


def score_folders(
    reference: Path,
    prediction: Path,
    out: Path,
    settings: ScoreSettings | None = None,
    *,
    name: str = "",
    place: Place | None = None,
    existing: Existing = Existing.REFUSE,
) -> ScoreSummary:
    """Score every case in either folder, and write the tables and the summary.

    ``case_scores.csv``, ``.xlsx``, ``.parquet``, ``summary.json``, ``report.html`` and ``figures``
    are written to `out`. A file that cannot be read affects only its own row. `name` is the model's
    name, by default the name of the prediction folder. `place` defines where the cases are scored,
    by default in this process. ``case_results.jsonl`` stores each finished case; with RESUME, only
    cases with new or changed files and cases that failed are scored.

    Raises
    ------
    FormatError
        If a folder is missing, has no mask or has two files for one case, or the clinical table
        cannot be read.
    SaveConflictError
        If `out` has other results.
    """
    settings = settings or ScoreSettings()
    pairs = find_cases(reference, prediction, settings.cases)
    cohort = read_table(settings.clinical, settings.columns)
    folders = (("reference", reference.name), ("prediction", prediction.name))
    own_name, store = name or prediction.resolve().name, out / STORE_NAME
    parameters = (*folders, *settings.parameters)
    with claimed_folder(out, "score", parameters, existing, (reference, prediction)):
        scored = score_pairs(
            own_name, pairs, settings, cohort, place=place, store=store, existing=existing
        )
    scored = replace(scored, model=with_composites(scored.model, settings.composites))
    overwrite = existing is not Existing.REFUSE
    write_scores(scored.model, out, overwrite=overwrite)
    (warnings,) = write_score_report([scored], out, settings, overwrite=overwrite)
    return ScoreSummary(scored.model, out, scored.looks.cases, warnings)


def score_pairs(
    name: str,
    pairs: Pairs | FoundPairs,
    settings: ScoreSettings,
    cohort: Cohort | None,
    *,
    place: Place | None = None,
    store: Path | None = None,
    existing: Existing = Existing.REFUSE,
) -> Scored:
    """Score all pairs of one model and compute the cohort's metrics.

    `place`, `store` and `existing` are as in `run_batch`.

    Raises
    ------
    FormatError
        If the data set in the settings does not exist.
    """
    files = pairs if isinstance(pairs, FoundPairs) else FoundPairs(pairs)
    rows, looks = _score_cases(files, settings, place, store, existing)
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK
    )
    model = cohort_numbers(name, rows, failures, len(rows), settings, cohort)
    model = replace(model, outside=files.outside)
    return Scored(model, files.pairs, looks_of(looks, settings))


@gc_frozen()
def cohort_numbers(
    name: str,
    rows: tuple[CaseScore, ...],
    failures: tuple[CaseFailure, ...],
    n_cases: int,
    settings: ScoreSettings,
    cohort: Cohort | None,
) -> ModelScores:
    """Compute the cohort's metrics from cases that have already been scored.

    Equal rows give identical numbers in any order. `failures` are copied into the result, and
    `n_cases` also counts cases without a row.
    """
    rows = tuple(sorted((_fill_empty(row, settings.profile) for row in rows), key=_case_id))
    # This reports progress between steps, which keeps the window responsive with 100,000 cases.
    report_progress(0, 1, _TAKING)
    scored = [row for row in rows if not (isnan(row.dsc) and isnan(row.norm_hd))]
    report_progress(0, 1, _TAKING)
    scores = SegmentationScores.of((row.case_id, row.dsc, row.norm_hd) for row in scored)
    report_progress(0, 1, _TAKING)
    sizes = CaseSizes(
        np.array([row.volume_reference_mm3 for row in scored], dtype=np.float64),
        np.array([row.diameter_reference_mm for row in scored], dtype=np.float64),
        np.array([row.hausdorff95_mm for row in scored], dtype=np.float64),
        tuple(split_tags(row.tags) for row in scored),
    )
    report_progress(0, 1, _TAKING)
    own_cohort = (matched([row.case_id for row in rows], cohort)) if cohort else None
    rules = rules_of(settings.profile.name)
    counted = count_cases(rows, settings.profile, settings.unusable)
    least = settings.minimum_group
    result = segmentation_result(
        scores, own_cohort, rules, settings.resampling, sizes, counted, least
    )
    return ModelScores(
        notes=_note_warnings(rows, settings.profile),
        name=name,
        profile=settings.profile.name,
        n_cases=n_cases,
        n_scored=len(scored),
        rows=rows,
        failures=failures,
        segmentation=result,
        response=None,
        clinical=described(settings.clinical, cohort, own_cohort),
        resampling=settings.resampling,
        cohort=own_cohort,
    )


def _note_warnings(rows: Sequence[CaseScore], profile: Profile) -> tuple[str, ...]:
    notes = []
    for marker, text in _OF_MANY.items():
        n_marked = sum(marker in row.warning for row in rows)
        if n_marked:
            notes.append(f"{n_marked} of {len(rows)} cases: {text}")
    n_odd = sum(OTHER_VALUES in row.warning for row in rows)
    if n_odd and profile.takes_any_values:
        notes.append(
            f"{n_odd} of {len(rows)} cases have values other than 0 and 1, which the profile "
            f"{profile.name} counts as stored: Dice counts only the value 1, and distances count "
            "every value that is not 0 as uint8; if this is not intended, convert the masks to 0 "
            "and 1"
        )
    elif n_odd:
        notes.append(
            f"{n_odd} of {len(rows)} cases have several values; the column warning states which "
            "values count as tumour"
        )
    return tuple(notes)


def _case_id(row: CaseScore) -> str:
    return row.case_id


def _fill_empty(row: CaseScore, profile: Profile) -> CaseScore:
    """Return the row of an empty prediction with the values that the profile assigns to it."""
    if row.status is not ScoreStatus.PREDICTION_EMPTY or not profile.unusable.empty_is_value:
        return row
    norm_hd = profile.norm_hd_one_empty if isnan(row.norm_hd) else row.norm_hd
    return replace(row, dsc=0.0, norm_hd=norm_hd)


def _score_cases(
    found: FoundPairs,
    settings: ScoreSettings,
    place: Place | None,
    store: Path | None,
    existing: Existing,
) -> tuple[tuple[CaseScore, ...], list[CaseInspection]]:
    """Return a row for each pair in order, including failed cases, and the inspections."""
    pairs = {name: files for name, files in found.pairs.items() if name not in found.problems}
    images: dict[str, CaseFiles] = {}
    if settings.images is not None:
        report_progress(0, 1, f"Listing the images of {settings.images.name}")
        image_cases = find_data_set(settings.images.absolute()).cases
        images = {case_key(case_images.case_id): case_images for case_images in image_cases}
    if settings.label is None and settings.profile.chooses_label:
        for masks in zip(*pairs.values(), strict=True):
            _require_own_label([path for path in masks if path is not None])
        _require_tumour_labels(pairs)
    batch = score_cases(
        pairs,
        settings.profile,
        settings.label,
        place,
        images=images,
        store=store,
        existing=existing,
    )
    rows = {result.score.case_id: result.score for result in batch.results}
    for failure in batch.failures:
        row = _make_failed_score(failure, settings)
        rows[failure.case_id] = _find_blame(row, pairs[failure.case_id], settings)
    for case_id, (status, reason) in found.problems.items():
        score = CaseScore(case_id, status, profile=settings.profile.name, reason=reason)
        rows[case_id] = _with_reference(score, found.pairs[case_id][0], settings)
    for case_id, reason in find_lost_zeros(found.pairs).items():
        rows[case_id] = replace(rows[case_id], reason=f"{rows[case_id].reason}; {reason}")
    in_order = [rows[case_id] for case_id in found.pairs]
    predictions = {case_id: files[1] for case_id, files in found.pairs.items()}
    full = with_facts(in_order, predictions, tags_for(list(found.pairs), settings))
    return full, [result.look for result in batch.results if result.look is not None]


def _require_tumour_labels(pairs: Mapping[str, tuple[Path | None, Path | None]]) -> None:
    """Raise `FormatError` if the named labels do not determine the tumour value of the masks."""
    for reference, prediction in pairs.values():
        label = None if reference is None else find_tumour_label(reference)
        if prediction is None:
            continue
        is_known = find_names_file(prediction) or sidecar_path(prediction).exists()
        if find_tumour_label(prediction) is None and label is not None and not is_known:
            raise FormatError(
                f"expected a dataset.json that names the labels of {prediction} (the "
                f"tumour in the reference is {label}), but found none: choose the label, or add a "
                f'dataset.json such as {{"labels": {{"background": 0, "tumour": 1}}}}',
                remedies=(Remedy("label", (str(label),)),),
            )
        return


def _require_own_label(masks: Sequence[Path]) -> None:
    """Raise `FormatError` if no mask has the value that the data set's own layout states."""
    label = find_own_label(masks[0]) if masks else None
    values: set[int] = set()
    for path in masks if label is not None else ():
        with suppress(MamamiaError):  # a damaged mask is reported with its case
            values.update(map(int, np.unique(read_labels(path).crop)))
        if label in values:
            return
    if values - {0}:
        raise FormatError(
            f"expected the value {label} in {masks[0]} and the other masks of its layout, but "
            f"found {name_some([str(value) for value in sorted(values - {0})])}: correct label in "
            "the layout file"
        )


def _make_failed_score(failure: CaseFailure, settings: ScoreSettings) -> CaseScore:
    status = _STATUS[failure.cause]
    name = settings.profile.name
    return CaseScore(failure.case_id, status, profile=name, reason=failure.reason)


def _find_blame(
    score: CaseScore, files: tuple[Path | None, Path | None], settings: ScoreSettings
) -> CaseScore:
    """Return the row of an unreadable case with the status that names the faulty file."""
    if score.status is ScoreStatus.UNREADABLE and files[1] is not None:
        score = replace(score, status=_read_again(files[1]))
    return _with_reference(score, files[0], settings)


def _read_again(prediction: Path) -> ScoreStatus:
    """Read a prediction again to determine why it is unreadable."""
    try:
        read_labels(prediction)
    except NotFiniteError:
        return ScoreStatus.NOT_FINITE
    except MamamiaError:
        pass
    return ScoreStatus.UNREADABLE


def _with_reference(score: CaseScore, reference: Path | None, settings: ScoreSettings) -> CaseScore:
    """Return the row of an unusable prediction with the sizes of its reference.

    Without a readable reference, the case counts for no model.
    """
    if reference is None:
        if score.status is ScoreStatus.REFERENCE_UNREADABLE:
            return score
        return replace(score, status=ScoreStatus.REFERENCE_MISSING)
    try:
        zero_nonfinite = settings.profile.takes_any_values
        read = read_tumour if settings.profile.chooses_label else read_labels
        labels = read(reference, settings.label, zero_nonfinite=zero_nonfinite)
        sizes: dict[str, Any] = dict(
            sizes_of_reference(labels, settings.profile, settings.label_value)
        )
    except MamamiaError as error:
        unreadable = ScoreStatus.REFERENCE_UNREADABLE
        return replace(score, status=unreadable, reason=str(error))
    return replace(score, **sizes)


def score_masks_of_cases(
    name: str, pairs: MaskPairs, settings: ScoreSettings, cohort: Cohort | None
) -> Scored:
    """Score masks in memory as `score_pairs` scores files; the report has no images.

    The images of the settings are not used.
    """
    rows: list[CaseScore] = []
    looks: list[CaseInspection] = []
    for number, (case_id, masks) in enumerate(pairs.items()):
        report_progress(number, len(pairs), f"Scoring {case_id}")
        scored = score_and_inspect_at(case_id, masks, settings.profile, settings.label_value)
        rows.append(scored.score)
        looks += [scored.look] if scored.look is not None else []
    full = with_facts(rows, {}, tags_for(list(pairs), settings))
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in full if row.status is not ScoreStatus.OK
    )
    model = cohort_numbers(name, full, failures, len(full), settings, cohort)
    return Scored(model, None, looks_of(looks, settings))
