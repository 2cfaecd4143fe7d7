"""Predict many cases in this process or in workers; if one case fails, the others continue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Mask
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import FormatError, MamamiaError, Remedy, SaveConflictError
from napari_mamamia.core.progress import part
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.append_file import read_checked_lines
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.provenance import sidecar_path
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX
from napari_mamamia.segmentation.model.segmenter import Prediction, Segmenter
from napari_mamamia.segmentation.run.registry import default_registry
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.batch.work import STORE_NAME, CaseInputs, CaseWork, Place
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.predict.model_choice import (
    ModelChoice,
    choice_of,
    require_ready,
    segmenter_of,
)
from napari_mamamia.services.predict.offers import with_offers
from napari_mamamia.services.predict.predict import (
    SavedPrediction,
    predict_case,
    save_prediction,
    save_probability,
)


def own_masks(out: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the SHA-256 of all masks that runs recorded in `out`, including earlier versions.

    Raises
    ------
    FormatError
        If the store cannot be read.
    """
    store = out / STORE_NAME
    hashes: dict[str, tuple[str, ...]] = {}
    for entry in read_checked_lines(store) if store.exists() else ():
        result = entry.get("result") if isinstance(entry, dict) else None
        if isinstance(result, dict) and "mask_sha256" in result:
            name = str(entry["case_id"])
            hashes[name] = (*hashes.get(name, ()), str(result["mask_sha256"]))
    return hashes


def require_replaceable(mask: Mask, target: Path, own: tuple[str, ...]) -> None:
    """Raise an error unless an existing mask was written by this run or equals the new mask.

    A mask that is identical to the new mask may come from a killed run that did not record it.

    Raises
    ------
    SaveConflictError
        If `target` is a different mask, which is kept.
    """
    if not target.exists() or sha256_of(target) in own or _is_equal(mask, target):
        return
    raise SaveConflictError(
        f"expected {target} to be a mask that this run wrote, but another program made or changed "
        "it, so it was kept; move the file, or replace all masks",
        remedies=(Remedy("overwrite"),),
    )


def _is_equal(mask: Mask, target: Path) -> bool:
    try:
        there = read_labels(target)
    except (MamamiaError, OSError):
        return False
    return there.grid.is_same_place(mask.grid) and bool((there.dense() == mask.array).all())


PROBABILITY_FOLDER: Final = "probability"
"""Folder of probability maps, separate from the masks because the maps are not cases."""

_ALL: Final = 1000  # steps of a case: reading, predicting, saving
_READ: Final = 30
_PREDICTED: Final = 980


@dataclass(frozen=True, slots=True)
class PredictSummary:
    """The new predictions of a run, the cases that an earlier run finished, and the failures."""

    saved: tuple[SavedPrediction, ...]
    skipped: tuple[str, ...]
    failures: tuple[CaseFailure, ...]


@dataclass(frozen=True, slots=True)
class PredictSettings:
    """The output folder, and all settings on which a prediction depends in addition to the case.

    `probability` is True if the probability map is also written. `registry` is the folder of the
    models that are suggested if this model fails; None stands for the user's own.
    """

    choice: ModelChoice
    out: Path
    probability: bool = False
    registry: Path | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _About:
    """The files of a case, and the checksums of older masks that may be replaced.

    If `own` is None, any mask may be replaced. This record is sent to other processes, so it
    includes only the times from the clinical row.
    """

    files: CaseFiles
    times_s: tuple[float, ...] | None
    overwrite: bool
    own: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A saved prediction in the store of results, with the checksums of its files.

    `probability_sha256` is "" if no map was written.
    """

    case_id: str
    file: str
    mask_sha256: str
    volume_mm3: float
    seconds: float
    notes: tuple[str, ...]
    probability_sha256: str


def predict_data_set(
    opened: OpenDataSet,
    segmenter: Segmenter,
    out: Path,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
    place: Place | None = None,
    *,
    probability: bool = False,
    registry: Path | None = None,
) -> PredictSummary:
    """Write ``out/ID.nii.gz`` and ``out/ID.json`` for each case.

    With `probability`, ``out/probability/ID.nii.gz`` is also written. If time or memory is
    insufficient for a case, its failure names the models in `registry` (by default the user's own)
    that are suitable.

    By default, all cases are predicted. With RESUME, cases are skipped if their mask, files, model
    and settings are unchanged; a mask that has been changed is kept, and its case fails. With ADD,
    a case that already has a mask fails, and the mask is kept. If `place` is this process,
    `segmenter` is used directly, and progress includes its tiles; workers load the model
    themselves.

    Raises
    ------
    CaseError
        If an id is unknown; nothing is then written.
    SaveConflictError
        If `out` has other results.
    MissingExtraError
        If the model's runtime is not installed on this computer; nothing is then written.
    """
    # With a scheduler, the model runs on other computers, so its runtime is not needed here.
    if place is None or not place.scheduler:
        require_ready(segmenter)
    case_files = [opened.data_set.case(case_id) for case_id in case_ids] or list(
        opened.data_set.cases
    )
    settings = PredictSettings(
        choice_of(segmenter), out.absolute(), probability, registry and registry.absolute()
    )
    read = opened.data_set.folders
    claim_folder(out, "predict", _list_parameters(opened, settings.choice), existing, read)
    own_hashes = own_masks(out) if existing is Existing.RESUME else None
    cases = [_collect_inputs(opened, files, existing, own_hashes) for files in case_files]
    present_ids: set[str] = set()

    def is_there(row: _Row) -> bool:
        if _is_unchanged(row, out):
            present_ids.add(row.case_id)
        return row.case_id in present_ids

    batch = run_batch(
        cases,
        CaseWork("predict", predict_files, settings, _Row),
        place,
        store=out / STORE_NAME,
        existing=existing,
        here=lambda inputs: _predict_one_case(inputs, settings, segmenter),
        still_holds=is_there,
    )
    opened.workspace.note_data_set()
    return PredictSummary(
        tuple(
            SavedPrediction(row.case_id, out / row.file, row.volume_mm3, row.seconds, row.notes)
            for row in batch.results
            if row.case_id not in present_ids
        ),
        tuple(row.case_id for row in batch.results if row.case_id in present_ids),
        batch.failures,
    )


def predict_files(inputs: CaseInputs, settings: PredictSettings) -> _Row:
    """Predict one case in a worker; the model remains loaded for the next case.

    Parameters
    ----------
    inputs
        The files of the case.
    settings
        The settings of the prediction.
    """
    return _predict_one_case(inputs, settings, _load_segmenter(settings.choice))


def _predict_one_case(inputs: CaseInputs, settings: PredictSettings, segmenter: Segmenter) -> _Row:
    about: _About = inputs.about
    record = CaseRecord(inputs.case_id, acquisition_times_s=about.times_s)
    with part(0, _READ, _ALL):
        case = load_case(about.files, record)
    choice = settings.choice
    with part(_READ, _PREDICTED, _ALL):
        prediction = with_offers(
            partial(predict_case, case, segmenter),
            case,
            choice.budget.limit_s,
            settings.registry or default_registry(),
            choice.names,
            choice.engine_settings,
        )
    target = settings.out / f"{inputs.case_id}{MASK_SUFFIX}"
    if about.own is not None:
        require_replaceable(prediction.mask, target, about.own)
    map_sha256 = _kept_map(prediction, target, about.overwrite) if settings.probability else ""
    with part(_PREDICTED, _ALL, _ALL):
        saved = save_prediction(prediction, case, target, overwrite=about.overwrite)
    return _Row(
        case_id=saved.case_id,
        file=saved.path.name,
        mask_sha256=sha256_of(saved.path),
        volume_mm3=saved.volume_mm3,
        seconds=saved.seconds,
        notes=saved.notes,
        probability_sha256=map_sha256,
    )


def _kept_map(prediction: Prediction, mask: Path, overwrite: bool) -> str:
    """Write a prediction's probability map and return its checksum."""
    target = _map_of(mask)
    save_probability(prediction, target, overwrite=overwrite)
    return sha256_of(target)


def _map_of(mask: Path) -> Path:
    return mask.parent / PROBABILITY_FOLDER / mask.name


@lru_cache(maxsize=1)
def _load_segmenter(choice: ModelChoice) -> Segmenter:
    return segmenter_of(choice)


def _collect_inputs(
    opened: OpenDataSet,
    files: CaseFiles,
    existing: Existing,
    own: Mapping[str, tuple[str, ...]] | None,
) -> CaseInputs:
    """Return a case with the absolute paths of all files on which its prediction depends."""
    images = dict.fromkeys(path for phase in files.phases for path in phase.files)
    others = (files.info, opened.data_set.clinical)
    paths = (*images, *(path for path in others if path is not None))
    record = opened.record(files.case_id)
    times_s = record.acquisition_times_s if record else None
    replaced = None if own is None else own.get(files.case_id, ())
    replaces = existing in (Existing.RESUME, Existing.OVERWRITE)
    about = _About(files, times_s, replaces, replaced)
    return CaseInputs(files.case_id, tuple(path.absolute() for path in paths), about)


def _list_parameters(opened: OpenDataSet, choice: ModelChoice) -> tuple[tuple[str, Setting], ...]:
    """Return the entries of `run.json`; a run with different entries cannot be resumed."""
    parameters = (("model", choice.name), ("data_set", opened.data_set.name))
    return parameters if choice.is_plain else (*parameters, ("settings", choice.key))


def _is_unchanged(row: _Row, out: Path) -> bool:
    target = out / row.file
    try:
        map_hash = row.probability_sha256
        if map_hash and sha256_of(_map_of(target)) != map_hash:
            return False
        return sidecar_path(target).is_file() and sha256_of(target) == row.mask_sha256
    except (OSError, FormatError):
        return False
