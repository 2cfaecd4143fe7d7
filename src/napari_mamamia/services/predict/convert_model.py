"""A model written again with plain numbers in place of pickles, which can run any program.

What the model computes stays the same to the bit. A checkpoint that wants to run something is
opened in a closed room only, and what comes out is checked before anything uses it.
"""

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import ModelError, SaveConflictError, SaveError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import require_torch
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import model_cache, unpack
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.stages import part
from napari_mamamia.segmentation.nnunet.isolated import RoomLimits, closed_room
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.services.batch.child import Child
from napari_mamamia.services.predict.convert_stage import (
    SAFE_SUFFIX,
    ConvertedFile,
    stage_job,
    stages_of,
)

__all__ = [
    "Converted",
    "ConvertedFile",
    "RoomLimits",
    "convert_model",
    "convertible",
    "isolation_reason",
]

_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written: the folder, its card, its files, and what the old ones were opened in.

    `isolation` is "" where they were read as data.
    """

    folder: Path
    card: ModelCard
    files: tuple[ConvertedFile, ...]
    isolation: str = ""


def convertible(model: ModelCard | Path) -> str:
    """Return "" if a model can be written again as safetensors, else why not; opens no weights."""
    try:
        card = model if isinstance(model, ModelCard) else recognise_model(model, checksums=False)
    except ModelError as error:
        return str(error)
    if card.kind is not ModelKind.NNUNET:
        return (
            f"only the pickles of an nnU-Net v2 model are written again, {card.path} is of the "
            f"kind {card.kind.value}: it stays as it is"
        )
    if card.missing:
        return "; ".join(card.missing)
    if all(weight.name.endswith(SAFE_SUFFIX) for weight in card.weights):
        return f"every checkpoint of {card.name} is a safetensors file already"
    return ""


def isolation_reason(*, as_root: bool = False) -> str:
    """Return "" if this computer can make a closed room, else why not; it is tried."""
    try:
        closed_room(as_root=as_root)
    except ModelError as error:
        return str(error)
    return ""


def convert_model(
    model: ModelCard | Path,
    out: Path,
    isolated: bool = False,
    *,
    recipe: Recipe | None = None,
    limits: RoomLimits | None = None,
    as_root: bool = False,
) -> Job[Converted]:
    """Return a job that writes an nnU-Net v2 model to the new folder `out`, whole or not at all.

    Beside the weights it has the same plans.json, dataset.json, licence and recipe; a cascade
    brings its first stage. Networks are handled in a process beside this one.

    Parameters
    ----------
    model
        Its card, or the path of its folder or zip.
    out
        A folder that does not exist yet, or is empty.
    isolated
        Whether each checkpoint is opened in a closed room, whatever it runs.
    recipe
        Written in place of the model's own.
    limits
        What opening one checkpoint in the room may use; None takes the usual ones.
    as_root
        Whether root may open it.

    Raises
    ------
    ModelError
        If it is no such model, does not fit its plans, or there is no closed room.
    RefusedCheckpointError
        If opening a checkpoint would run something and `isolated` is off.
    SaveConflictError
        If there is something in `out`.
    SaveError
        If the system refuses to write.
    """
    yield Progress(0, 1, "Looking at the model")
    require_torch()
    card = model if isinstance(model, ModelCard) else recognise_model(model, checksums=False)
    if reason := convertible(card):
        raise ModelError(reason)
    _require_free(out)
    isolation = closed_room(as_root=as_root) if isolated else None
    folder = (yield from unpack(card.path, model_cache())) if card.is_zip else card.path
    stages = stages_of(card, folder, recipe, isolation, limits)
    files: list[ConvertedFile] = []
    with own_folder(out.parent) as staging, closing(Child()) as child:
        for number, stage in enumerate(stages):
            steps = (number * _STEPS, (number + 1) * _STEPS, len(stages) * _STEPS)
            files += yield from part(stage_job(stage, staging, child), *steps)
        yield Progress(len(stages) * _STEPS, len(stages) * _STEPS, "Saving", binding=True)
        _finished(staging, out)
    yield Progress(1, 1, "Converted")
    found = recognise_model(out, checksums=False)
    return Converted(out, found, tuple(files), isolation.text if isolation else "")


def _require_free(out: Path) -> None:
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise SaveConflictError(
            f"the converted model should go to a new folder, but there is something at {out}: give "
            "another one; nothing was overwritten"
        )


def _finished(staging: Path, out: Path) -> None:
    """Give the whole new folder its name; a folder that holds something is never replaced."""
    _require_free(out)
    try:
        place_folder(staging, out)
    except OSError as error:
        raise _not_written(out, error) from error


def _not_written(out: Path, error: OSError) -> SaveError:
    return SaveError(
        f"the converted model should be written to {out}, but {error.strerror or error}: choose "
        "another folder, or make room"
    )
