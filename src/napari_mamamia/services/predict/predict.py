"""Predict one case and save the result; `predict.cases` predicts many cases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.case import Case, LabelMap, Mask
from napari_mamamia.core.errors import ModelError, Remedy
from napari_mamamia.core.program.system import process_peak_memory_bytes
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import (
    InputFile,
    Maker,
    Provenance,
)
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.segmenter import Prediction, Prompt, Segmenter
from napari_mamamia.services.case.explained_mask import write_explained
from napari_mamamia.services.predict.durations import remember_seconds

_STEPS_OF_ONE: Final = 1024  # of a probability map's file


@dataclass(frozen=True, slots=True)
class SavedPrediction:
    """A mask file that was written and read back without differences."""

    case_id: str
    path: Path
    volume_mm3: float
    seconds: float
    notes: tuple[str, ...] = ()


def segmenters() -> tuple[Segmenter, ...]:
    """Return the built-in models, which need no weights."""
    return (KineticSegmenter(),)


def segmenter_named(name: str) -> Segmenter:
    """Return the built-in model with this name, or raise a `ModelError` that lists all names."""
    for segmenter in segmenters():
        if segmenter.name == name:
            return segmenter
    names = ", ".join(segmenter.name for segmenter in segmenters())
    raise ModelError(f"expected the model to be one of {names}, but got {name!r}")


def predict_case(case: Case, segmenter: Segmenter, prompt: Prompt | None = None) -> Prediction:
    """Segment an open case and record the method in the provenance.

    Parameters
    ----------
    case
        The case with its phases.
    segmenter
        The model.
    prompt
        A click or a box, or None.
    """
    prediction = segmenter.predict(case, prompt)
    if prompt is None:
        remember_seconds(segmenter.name, case.signal[0].size, prediction.seconds)
    provenance = Provenance(
        case_id=case.case_id,
        maker=Maker.MODEL,
        name=segmenter.name,
        parameters=prediction.parameters,
        seconds=prediction.seconds,
        note=segmenter.note,
        device=prediction.device,
        peak_memory_bytes=prediction.peak_memory_bytes or process_peak_memory_bytes(),
    )
    mask = Mask(prediction.mask.grid, prediction.mask.array, provenance)
    return replace(prediction, mask=mask)


def save_prediction(
    prediction: Prediction, case: Case, target: Path, *, overwrite: bool = False
) -> SavedPrediction:
    """Write a prediction and its provenance file, which has checksums of the input.

    Parameters
    ----------
    prediction
        The prediction of the case.
    case
        The case with its phases.
    target
        The file to write.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    SaveConflictError, SaveError
        If the file exists or cannot be written; an existing file is then unchanged.
    """
    sources = list(dict.fromkeys(file for phase in case.phases for file in phase.sources))
    inputs = []
    for number, source in enumerate(sources):
        report_progress(number, len(sources) + 1, "Checksums of the input")
        inputs.append(InputFile(source.name, sha256_of(source)))
    # From here on the work cannot be cancelled, because "stopped" always means that nothing was
    # written.
    report_progress(len(sources), len(sources) + 1, "Saving", binding=True)
    base_provenance = prediction.mask.provenance
    if base_provenance is None:
        raise ModelError(
            "the prediction cannot be saved, because it has no provenance; use predict_case"
        )
    provenance = replace(base_provenance, inputs=tuple(inputs))
    mask = prediction.mask
    write_explained(LabelMap.of(mask.array, mask.grid), provenance, target, overwrite=overwrite)
    report_progress(len(sources) + 1, len(sources) + 1, "Saved")
    said = (*prediction.notes, *_unsure_lines(prediction), case.grid.spacing_warning)
    notes = tuple(filter(None, said))
    return SavedPrediction(
        case.case_id, target, prediction.mask.volume_mm3, prediction.seconds, notes
    )


def _unsure_lines(prediction: Prediction) -> Iterator[str]:
    """Yield why the first candidate may be wrong, and the other candidates' positions."""
    if prediction.unsure:
        places = ", ".join(
            f"{candidate.rank} ({candidate.volume_mm3 / 1000:.2g} ml at z {z:.0f}, y {y:.0f}, "
            f"x {x:.0f})"
            for candidate in prediction.candidates
            for z, y, x in (candidate.box.centre,)
        )
        yield f"it is uncertain which region is the tumour ({prediction.unsure}); check {places}"


def save_probability(prediction: Prediction, target: Path, *, overwrite: bool = False) -> None:
    """Write a prediction's probability map as float32, 0 to 1 in steps of 1/1024.

    Every viewer can read float32. The steps make the file small; float16 has steps of half this
    size just below 1.

    Parameters
    ----------
    prediction
        The prediction of the case.
    target
        The file to write.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    ModelError
        If the prediction has no probability map.
    SaveConflictError, SaveError, FormatError
        As in `write_volume`.
    """
    if prediction.probability is None:
        raise ModelError(
            f"expected a probability map of {prediction.case_id} to save, but the model returned "
            "none; choose a trained model, or do not save the map",
            remedies=(Remedy("model"),),
        )
    steps = np.rint(prediction.probability.astype(np.float32) * _STEPS_OF_ONE)
    steps /= np.float32(_STEPS_OF_ONE)
    write_volume(steps, prediction.mask.grid, target, overwrite=overwrite)
