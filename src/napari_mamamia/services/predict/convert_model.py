"""Convert a model's pickled checkpoints, which can run arbitrary code, to safetensors.

The model's results remain bit-identical. A checkpoint that contains code is opened only in a
sandbox, and the resulting file is checked before use.
"""

import os
import re
import shutil
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.core.errors import MamamiaError, ModelError, SaveConflictError, SaveError
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.user_folders import absolute
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, licence_file
from napari_mamamia.segmentation.model.device import require_torch
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import (
    model_cache,
    open_files,
    require_own,
    unpack,
)
from napari_mamamia.segmentation.model.recipe import Recipe, recipe_text
from napari_mamamia.segmentation.nnunet.isolated import SandboxLimits, sandbox, taken_out
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.sandbox.isolation import Isolation
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.work import CaseInputs, CaseWork

# Conversion of one trained folder. Checkpoints are opened in a subprocess, because torch must not
# be imported in the window's process.

SAFE_SUFFIX: Final = ".safetensors"
_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A converted checkpoint: its path in the model's folder, and the SHA-256 of the original.

    `tensors` is the number of stored tensors; the header lists the additional names of shared
    tensors. `n_bytes` is the size of the new file.
    """

    name: str
    source_sha256: str
    tensors: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A trained folder: its path, its name in the new model, and its licence, if any.

    `isolation` and `limits` define the sandbox for its checkpoints. If they are None, the
    checkpoints are read as data, and no code is run.
    """

    root: Path
    name: str
    configuration: str
    licence: Path | None = None
    recipe: Recipe | None = None
    isolation: Isolation | None = None
    limits: SandboxLimits | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result or the error of the subprocess."""

    tensors: int = 0
    source_sha256: str = ""
    error: MamamiaError | None = None


def stages_of(
    card: ModelCard,
    folder: Path,
    recipe: Recipe | None,
    isolation: Isolation | None,
    limits: SandboxLimits | None,
) -> tuple[Stage, ...]:
    """Return a model's stages in order of execution.

    `folder` is the unpacked folder of the model. Stages keep their names, which contain the
    trainer, the plans and the configuration.
    """
    root = folder / card.inner if card.inner else absolute(folder)
    name = _clean_name(card.name) if card.is_zip and not card.inner else root.name
    files = open_files(folder)
    licence_name = licence_file(files, card.inner)
    licence = folder / licence_name if licence_name else None
    last = Stage(root, name, card.configuration, licence, recipe, isolation, limits)
    before = str(dict(card.facts).get("previous_stage") or "")
    if not before:
        return (last,)
    first = "__".join([*root.name.split("__")[:-1], before])
    return (Stage(root.parent / first, first, before, licence, None, isolation, limits), last)


def convert_stage(stage: Stage, into: Path, child: Child) -> tuple[ConvertedFile, ...]:
    """Write a stage to a new folder in `into` that has the stage's name.

    Raises
    ------
    ModelError
        If a checkpoint cannot be opened or does not match the plans; see `convert.rewrite`.
    SaveError
        If a file cannot be written.
    """
    target = into / stage.name
    texts = _copy_small_files(stage, target)
    files = _list_checkpoints(stage.root)
    new_files = []
    for number, file in enumerate(files):
        steps = (number * _STEPS, (number + 1) * _STEPS, len(files) * _STEPS)
        with part(*steps):
            new_files.append(_convert_checkpoint(file, stage, texts, target, child))
    return tuple(new_files)


def _clean_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "model"


def _copy_small_files(stage: Stage, target: Path) -> tuple[str, str]:
    """Write the small files; return the contents of plans.json and dataset.json."""
    texts = []
    try:
        target.mkdir(parents=True)
        for name in ("plans.json", "dataset.json"):
            require_own(stage.root / name)
            shutil.copyfile(stage.root / name, target / name)
            texts.append((target / name).read_text("utf-8"))
        if stage.licence is not None:
            shutil.copyfile(stage.licence, target / stage.licence.name)
        if stage.recipe is not None:
            write_text_atomically(target / RECIPE_NAME, recipe_text(stage.recipe))
        elif (stage.root / RECIPE_NAME).is_file():
            require_own(stage.root / RECIPE_NAME)
            shutil.copyfile(stage.root / RECIPE_NAME, target / RECIPE_NAME)
    except (OSError, UnicodeDecodeError) as error:
        raise SaveError(
            f"the small files of {stage.root} could not be copied to {target}: {error}; free some "
            "space, choose a different folder, or copy the model again"
        ) from error
    return texts[0], texts[1]


def _list_checkpoints(root: Path) -> tuple[Path, ...]:
    """Return the checkpoints; if two differ only in their suffix, the safetensors file is used."""
    names = sorted(
        weight.name for weight in recognise_model(root, inner="", checksums=False).weights
    )
    # in alphabetical order, .safetensors replaces .pth
    by_stem = {str(PurePosixPath(name).with_suffix("")): root / name for name in names}
    return tuple(by_stem.values())


def _convert_checkpoint(
    file: Path, stage: Stage, texts: tuple[str, str], target: Path, child: Child
) -> ConvertedFile:
    label = f"{file.parent.name}/{file.name}"
    report_progress(0, _STEPS, f"Converting {label}")
    new = target / file.parent.name / f"{file.stem}{SAFE_SUFFIX}"
    new.parent.mkdir(exist_ok=True)
    with own_folder() as work:
        source = file
        if stage.isolation is not None and file.suffix != SAFE_SUFFIX:
            before = f"Opening {label} in the sandbox: "
            with part(0, _STEPS // 2, _STEPS, before):
                source = taken_out(file, stage.isolation, work, stage.limits)
        order = _Order(source, file, absolute(new), *texts, stage.configuration)
        answer = _rewrite_in_child(order, child, f"Writing {new.parent.name}/{new.name}")
    name = f"{stage.name}/{new.parent.name}/{new.name}"
    return ConvertedFile(name, answer.source_sha256, answer.tensors, new.stat().st_size)


@dataclass(frozen=True, slots=True)
class _Order:
    """The arguments for `convert.rewrite` in the subprocess."""

    source: Path
    checkpoint: Path
    target: Path
    plans: str
    dataset: str
    configuration: str


def _rewrite_in_child(order: _Order, child: Child, text: str) -> _Answer:
    """Convert a checkpoint in the subprocess; raise the error of the subprocess here."""
    work = CaseWork("convert", _rewrite_checkpoint, order, _Answer)
    with part(_STEPS // 2, _STEPS // 2, _STEPS, text):
        outcome = attempt_in_child(child, work, CaseInputs(text), None)
    answer: _Answer | None = outcome.result
    if answer is None:
        raise ModelError(
            f"{order.checkpoint} could not be converted: {outcome.reason}; close other programs "
            "and try again"
        )
    if answer.error is not None:
        raise answer.error
    return answer


def _rewrite_checkpoint(inputs: CaseInputs, order: _Order) -> _Answer:
    """Convert a checkpoint; this function runs in the subprocess."""
    from napari_mamamia.segmentation.nnunet.convert import rewrite

    del inputs
    try:
        tensors, sha256 = rewrite(**asdict(order))
    except MamamiaError as error:
        return _Answer(error=error)
    return _Answer(tensors, sha256)


@dataclass(frozen=True, slots=True)
class Converted:
    """The converted model: its folder, card and files, and the sandbox used for its checkpoints.

    `isolation` is "" if the checkpoints were read as data.
    """

    folder: Path
    card: ModelCard
    files: tuple[ConvertedFile, ...]
    isolation: str = ""


def convertible(model: ModelCard | Path) -> str:
    """Return why a model cannot be converted to safetensors, or "" if it can.

    The weights are not opened.
    """
    try:
        card = model if isinstance(model, ModelCard) else recognise_model(model, checksums=False)
    except ModelError as error:
        return str(error)
    if card.kind is not ModelKind.NNUNET:
        return (
            f"only the pickles of an nnU-Net v2 model can be converted, but {card.path} is of the "
            f"kind {card.kind}; the model was not changed"
        )
    if card.missing:
        return "; ".join(card.missing)
    if all(weight.name.endswith(SAFE_SUFFIX) for weight in card.weights):
        return f"every checkpoint of {card.name} is already a safetensors file"
    return ""


def isolation_reason(*, as_root: bool = False) -> str:
    """Create a sandbox as a test; return why this is not possible, or "" on success."""
    try:
        sandbox(as_root=as_root)
    except ModelError as error:
        return str(error)
    return ""


def convert_model(
    model: ModelCard | Path,
    out: Path,
    isolated: bool = False,
    *,
    recipe: Recipe | None = None,
    limits: SandboxLimits | None = None,
    as_root: bool = False,
) -> Converted:
    """Convert an nnU-Net v2 model into the new folder `out`, completely or not at all.

    The plans.json, dataset.json, licence and recipe are not changed. A cascade is converted with
    its first stage. Checkpoints are opened in a subprocess.

    Parameters
    ----------
    model
        The card of the model, or the path of its folder or zip.
    out
        A folder that is empty or does not exist yet.
    isolated
        Whether to open each checkpoint in a sandbox, which allows any code in the checkpoint.
    recipe
        A recipe that replaces the model's own.
    limits
        The limits for opening a checkpoint in the sandbox; None for the default limits.
    as_root
        Whether the root user may open checkpoints.

    Raises
    ------
    ModelError
        If the model is not an nnU-Net v2 model or does not match its plans, or there is no sandbox.
    RefusedCheckpointError
        If a checkpoint contains code and `isolated` is False.
    SaveConflictError
        If `out` is not empty.
    SaveError
        If a file cannot be written.
    """
    report_progress(0, 1, "Inspecting the model")
    require_torch()
    card = model if isinstance(model, ModelCard) else recognise_model(model, checksums=False)
    if reason := convertible(card):
        raise ModelError(reason)
    _require_free(out)
    isolation = sandbox(as_root=as_root) if isolated else None
    folder = (unpack(card.path, model_cache())) if card.is_zip else card.path
    stages = stages_of(card, folder, recipe, isolation, limits)
    files: list[ConvertedFile] = []
    with own_folder(out.parent) as staging, closing(Child()) as child:
        for number, stage in enumerate(stages):
            steps = (number * _STEPS, (number + 1) * _STEPS, len(stages) * _STEPS)
            with part(*steps):
                files += convert_stage(stage, staging, child)
        report_progress(len(stages) * _STEPS, len(stages) * _STEPS, "Saving", binding=True)
        # A folder that is not empty is never replaced.
        _require_free(out)
        place_folder(staging, out)
    report_progress(1, 1, "Converted")
    new_card = recognise_model(out, checksums=False)
    return Converted(out, new_card, tuple(files), isolation.text if isolation else "")


def _require_free(out: Path) -> None:
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise SaveConflictError(
            f"expected {out} to be a new or empty folder, but it is not empty, so nothing was "
            "written; choose a different folder"
        )
