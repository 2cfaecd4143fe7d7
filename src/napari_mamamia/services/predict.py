"""Predicting: one case for the window, many cases for the command line; the same code."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.case import Case, Mask
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.checksums import sha256_of
from napari_mamamia.io.provenance import sidecar_path, write_provenance
from napari_mamamia.io.volumes import write_mask
from napari_mamamia.segmentation.kinetic import KineticSegmenter
from napari_mamamia.segmentation.segmenter import Prediction, Prompt, Segmenter
from napari_mamamia.services.batch import for_each_case
from napari_mamamia.services.data_set import OpenDataSet
from napari_mamamia.services.open_case import load_case
from napari_mamamia.services.output_folder import Existing, claim_folder

__all__ = [
    "PredictSummary",
    "SavedPrediction",
    "predict_case",
    "predict_data_set",
    "save_prediction",
    "segmenter_named",
    "segmenters",
]


@dataclass(frozen=True, slots=True)
class SavedPrediction:
    """A mask file that was written, read back and found equal."""

    case_id: str
    path: Path
    volume_mm3: float
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PredictSummary:
    """What a prediction run made, what it found done already, and what failed."""

    saved: tuple[SavedPrediction, ...]
    skipped: tuple[str, ...]
    failures: tuple[CaseFailure, ...]


def segmenters() -> tuple[Segmenter, ...]:
    """Return the models that need nothing but this installation."""
    return (KineticSegmenter(),)


def segmenter_named(name: str) -> Segmenter:
    """Return the model called `name`, or raise `ModelError` that lists the known ones."""
    for segmenter in segmenters():
        if segmenter.name == name:
            return segmenter
    known = ", ".join(segmenter.name for segmenter in segmenters())
    raise ModelError(f"no model is called {name!r}: choose one of {known}")


def predict_case(case: Case, segmenter: Segmenter, prompt: Prompt | None = None) -> Job[Prediction]:
    """Return a job that segments a case that is open, and says in the mask's provenance how."""
    prediction = yield from segmenter.predict(case, prompt)
    provenance = Provenance(
        case_id=case.case_id,
        maker=Maker.MODEL,
        name=segmenter.name,
        parameters=prediction.parameters,
        seconds=prediction.seconds,
        note=segmenter.note,
    )
    mask = Mask(prediction.mask.grid, prediction.mask.array, provenance)
    return Prediction(
        prediction.case_id,
        mask,
        prediction.candidates,
        prediction.parameters,
        prediction.seconds,
        prediction.notes,
    )


def save_prediction(
    prediction: Prediction, case: Case, target: Path, *, overwrite: bool = False
) -> Job[SavedPrediction]:
    """Return a job that writes a prediction and, beside it, its provenance with input checksums.

    Raises
    ------
    SaveConflictError, SaveError
        An existing file is untouched then.
    """
    sources = list(dict.fromkeys(file for phase in case.phases for file in phase.sources))
    inputs = []
    for done, source in enumerate(sources):
        yield Progress(done, len(sources) + 1, "Checksums of the input")
        inputs.append(InputFile(source.name, sha256_of(source)))
    yield Progress(len(sources), len(sources) + 1, "Saving")
    made = prediction.mask.provenance
    if made is None:
        raise ModelError("a prediction without provenance is not saved: use predict_case")
    provenance = Provenance(
        case_id=made.case_id,
        maker=made.maker,
        name=made.name,
        inputs=tuple(inputs),
        parameters=made.parameters,
        seconds=made.seconds,
        note=made.note,
        created=made.created,
        software=made.software,
    )
    write_mask(prediction.mask, target, overwrite=overwrite)
    write_provenance(provenance, sidecar_path(target), overwrite=True)
    yield Progress(len(sources) + 1, len(sources) + 1, "Saved")
    return SavedPrediction(
        case.case_id, target, prediction.mask.volume_mm3, prediction.seconds, prediction.notes
    )


def predict_data_set(
    opened: OpenDataSet,
    segmenter: Segmenter,
    out: Path,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
) -> Job[PredictSummary]:
    """Return a job that writes ``out/ID.nii.gz`` and ``out/ID.json`` for each case.

    Without `case_ids`, all cases. With RESUME, cases whose mask and provenance are there are
    skipped.

    Raises
    ------
    CaseError
        If an id is unknown; nothing is written then.
    SaveConflictError
        If `out` holds other results.
    """
    wanted = [opened.data_set.case(case_id) for case_id in case_ids] or list(opened.data_set.cases)
    parameters = (("model", segmenter.name), ("data_set", opened.data_set.name))
    claim_folder(out, "predict", parameters, existing)
    targets = {files.case_id: out / f"{files.case_id}.nii.gz" for files in wanted}
    done = [
        case_id
        for case_id, target in targets.items()
        if existing is Existing.RESUME and target.exists() and sidecar_path(target).exists()
    ]

    def work(case_id: str) -> Job[SavedPrediction]:
        case = yield from load_case(opened.data_set.case(case_id), opened.record(case_id))
        prediction = yield from predict_case(case, segmenter)
        replace = existing is not Existing.REFUSE
        return (yield from save_prediction(prediction, case, targets[case_id], overwrite=replace))

    waiting = [case_id for case_id in targets if case_id not in set(done)]
    batch = yield from for_each_case(waiting, work)
    return PredictSummary(batch.results, tuple(done), batch.failures)
