"""`mamamia predict` and `mamamia models`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.options import (
    CaseOption,
    DataSetArgument,
    OutOption,
    OverwriteOption,
    ResumeOption,
    SchedulerOption,
    WorkersOption,
    existing_policy,
)
from napari_mamamia.cli.printing import NOT_EVERY_CASE, finish, run

if TYPE_CHECKING:
    from napari_mamamia.segmentation.registry import ModelEntry
    from napari_mamamia.segmentation.segmenter import Segmenter
    from napari_mamamia.services.batch_work import Place
    from napari_mamamia.services.model_choice import RunChoices
    from napari_mamamia.services.predict_cases import PredictSummary

__all__ = ["models", "predict"]

models = typer.Typer(help="Models that you added; nothing is ever downloaded.")


class DeviceName(StrEnum):
    """Names of `segmentation.device.DEVICES`."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class BackendName(StrEnum):
    """Names of `segmentation.engine_settings.BACKENDS`, and the choice between them."""

    AUTO = "auto"
    TORCH = "torch"
    OPENVINO = "openvino"


RegistryOption = Annotated[
    Path | None,
    typer.Option("--registry", metavar="DIR", help="Folder of added models (default: your own)."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name it was added by, or path.")]


def predict(
    data_set: DataSetArgument,
    out: OutOption,
    model: Annotated[
        str,
        typer.Option("--model", metavar="NAME|PATH", help="Model; 'kinetic' needs no weights."),
    ] = "kinetic",
    case: CaseOption = None,
    device: Annotated[DeviceName, typer.Option("--device", help="Where it runs.")] = (
        DeviceName.AUTO
    ),
    backend: Annotated[BackendName, typer.Option("--backend", help="What runs it.")] = (
        BackendName.AUTO
    ),
    folds: Annotated[
        str, typer.Option("--folds", metavar="0,1|all", help="Folds to average (default: all).")
    ] = "all",
    step: Annotated[
        float, typer.Option("--step", help="Distance of tiles as a share of the patch.")
    ] = 0.5,
    no_mirroring: Annotated[
        bool, typer.Option("--no-mirroring", help="Do not average mirrored copies.")
    ] = False,
    no_postprocessing: Annotated[
        bool, typer.Option("--no-postprocessing", help="Leave out the recipe's last steps.")
    ] = False,
    recipe: Annotated[
        str, typer.Option("--recipe", metavar="NAME|FILE", help="Preset or mamamia_model.json.")
    ] = "",
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", help="Longest time for one case."),
    ] = None,
    fit_time: Annotated[
        bool, typer.Option("--fit-time", help="Give up exactness to stay within the limit.")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="Half precision (bf16): faster, not exact.")
    ] = False,
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    registry: RegistryOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Segment the tumour: writes OUT/ID.nii.gz and OUT/ID.json for each case.

    What is given up for the time limit, in this order: tiles outside the breast, bf16, step 0.75,
    mirrored copies, folds. Each is said and kept in OUT/ID.json; another model is never taken.
    """
    from napari_mamamia.services.predict_cases import predict_data_set

    if fit_time and time_limit is None:
        raise typer.BadParameter("--fit-time needs a limit: add --time-limit SECONDS")
    choices = _choices(device.value, backend.value, folds, step, time_limit, fit_time, fast, recipe)
    choices = _with(choices, not no_mirroring, not no_postprocessing)
    segmenter = _segmenter(model, choices, registry)
    opened = open_at(data_set)
    place = _place(workers, scheduler, time_limit, segmenter)
    existing = existing_policy(resume, overwrite)
    try:
        summary = run(predict_data_set(opened, segmenter, out, case or (), existing, place))
    finally:
        _close(segmenter)
    _print_summary(summary, out, segmenter.note)


@models.command("add")
def add(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="nnU-Net result folder or zip.")],
    name: Annotated[str, typer.Option("--name", help="Name to give it (default: its own).")] = "",
    registry: RegistryOption = None,
) -> None:
    """Recognise a model without running anything of it, and keep where it is."""
    from napari_mamamia.segmentation.registry import add_model, default_registry

    entry = run(add_model(path, registry or default_registry(), name))
    _print_entry(entry)


@models.command("list")
def list_(registry: RegistryOption = None) -> None:
    """List the models that can be named in --model."""
    from napari_mamamia.segmentation.registry import default_registry, list_models

    print("kinetic  needs no weights (kinetic threshold, not a trained model)")
    for entry in list_models(registry or default_registry()):
        card = entry.card
        what = entry.problem or (
            f"{card.kind.value}, {len(card.channels)} channel(s), fold(s) {', '.join(card.folds)}, "
            f"sha256 {card.sha256[:12]}"
        )
        print(f"{entry.name}  {what}")


@models.command("show")
def show(model: NameArgument, registry: RegistryOption = None) -> None:
    """Show what is known of a model: inputs, labels, licence, checksums."""
    from napari_mamamia.segmentation.registry import default_registry, find_model

    _print_entry(find_model(model, registry or default_registry()))


@models.command("verify")
def verify(model: NameArgument, registry: RegistryOption = None) -> None:
    """Compare every file of weights with its checksum at the time of adding."""
    from napari_mamamia.segmentation.registry import default_registry, find_model, verify_model

    found = run(verify_model(find_model(model, registry or default_registry())))
    for name, problem in found.files:
        print(f"{name}  {problem or 'unchanged'}")
    if not found.is_whole:
        raise typer.Exit(NOT_EVERY_CASE)


def _choices(
    device: str,
    backend: str,
    folds: str,
    step: float,
    limit_s: float | None,
    fit_time: bool,
    fast: bool,
    recipe: str,
) -> "RunChoices":
    from napari_mamamia.segmentation.planner import LADDER
    from napari_mamamia.services.model_choice import RunChoices

    named = tuple(fold.strip() for fold in folds.split(",") if fold.strip())
    return RunChoices(
        device=device,
        backend=backend,
        folds=() if named == ("all",) else named,
        step=step,
        limit_s=limit_s,
        give_up=LADDER if fit_time else (),
        fast=fast,
        recipe=recipe,
    )


def _with(choices: "RunChoices", mirroring: bool, postprocessing: bool) -> "RunChoices":
    from dataclasses import replace

    return replace(choices, mirroring=mirroring, postprocessing=postprocessing)


def _segmenter(model: str, choices: "RunChoices", registry: Path | None) -> "Segmenter":
    from napari_mamamia.segmentation.worker_client import Worker
    from napari_mamamia.services.model_choice import open_model

    return open_model(model, choices, Worker(), registry)


def _close(segmenter: "Segmenter") -> None:
    from napari_mamamia.segmentation.planned import PlannedSegmenter

    if isinstance(segmenter, PlannedSegmenter):
        segmenter.close()


def _place(workers: int, scheduler: str, limit_s: float | None, segmenter: "Segmenter") -> "Place":
    """Return where to work; in this process a trained model ends its own process at the limit."""
    from napari_mamamia.segmentation.planned import PlannedSegmenter
    from napari_mamamia.services.batch_work import Place

    own = isinstance(segmenter, PlannedSegmenter) and not workers and not scheduler
    try:
        return Place(workers, scheduler, None if own else limit_s)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _print_summary(summary: "PredictSummary", out: Path, note: str) -> None:
    for saved in summary.saved:
        print(f"{saved.case_id}  {saved.volume_mm3 / 1000:.2f} ml  {saved.seconds:.1f} s")
        for said in saved.notes:
            print(f"    {said}")
    if summary.skipped:
        print(f"{len(summary.skipped)} case(s) were there already")
    print(f"{len(summary.saved)} prediction(s) saved in {out} ({note})")
    finish(summary.failures)


def _print_entry(entry: "ModelEntry") -> None:
    card = entry.card
    print(f"name      {entry.name}\nkind      {card.kind.value}\nplace     {card.path}")
    for number, name in enumerate(card.channels):
        print(f"channel   {number}: {name}")
    for label, values in card.labels:
        print(f"label     {label} = {', '.join(map(str, values))}")
    print(f"folds     {', '.join(card.folds)}\ntrainer   {card.trainer or '–'}")
    for fact, value in card.facts:
        if value not in (None, False):
            print(f"{fact.replace('_', ' '):<9} {value}")
    print(f"recipe    {'beside the model' if card.has_recipe else 'none: channel k is phase k'}")
    licence = card.licence.strip().splitlines()
    print(f"licence   {licence[0] if licence else 'unknown: ask its author'}")
    for weight in card.weights:
        print(f"weights   {weight.name}  {weight.n_bytes} bytes  {weight.sha256}")
