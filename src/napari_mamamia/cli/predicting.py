"""The command `mamamia predict`."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish, run
from napari_mamamia.cli.quantities import SECONDS, Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import Backend, Device, FusionRule
from napari_mamamia.core.names import count_of

if TYPE_CHECKING:
    from napari_mamamia.segmentation.model.segmenter import Segmenter
    from napari_mamamia.services.batch.work import Place
    from napari_mamamia.services.predict.cases import PredictSummary
    from napari_mamamia.services.predict.model_choice import RunChoices


_TRAINED = "Trained models only"
_DEFAULT_MODEL = "kinetic"
_THREADS: Final = Quantity("a number of threads", 1, 1024, "", "enter one for each core", True)
_STEP: Final = Quantity("a fraction of the patch", 0.01, 1, "", "enter a number such as 0.5")


def _read_device(text: str) -> str:
    if text in tuple(Device) or re.fullmatch(r"cuda:\d{1,2}", text):
        return text
    raise typer.BadParameter(
        f"expected the device to be one of {', '.join(Device)} or cuda:N, but it is {text!r}"
    )


@reports_result
def predict(
    data_set: options.DataSetArgument,
    out: options.OutOption,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME|PATH",
            help=(
                "Added model, its path, or 'kinetic' (the default, which needs no weights). "
                "Repeatable "
                "with --fuse."
            ),
        ),
    ] = None,
    fuse: Annotated[
        FusionRule | None,
        typer.Option(
            "--fuse",
            help=(
                "How to combine the masks of several models: mean of the probabilities, majority "
                "of "
                "the masks, or STAPLE."
            ),
        ),
    ] = None,
    case: options.CaseOption = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            parser=SECONDS,
            help="Maximum time for one case, for all models together.",
        ),
    ] = None,
    probability: Annotated[
        bool,
        typer.Option("--probability", help="Also write OUT/probability/ID.nii.gz (float32, 0..1)."),
    ] = False,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="auto|cpu|cuda|cuda:N|mps",
            parser=_read_device,
            help="Device on which the network runs.",
            rich_help_panel=_TRAINED,
        ),
    ] = "auto",
    backend: Annotated[
        Backend,
        typer.Option(
            "--backend",
            help="Runtime of the network; auto means torch, or OpenVINO for --fast on a CPU.",
            rich_help_panel=_TRAINED,
        ),
    ] = Backend.AUTO,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            parser=_THREADS,
            help="CPU threads for a network (default: every core but one, shared among --workers).",
            rich_help_panel=_TRAINED,
        ),
    ] = None,
    folds: Annotated[
        str,
        typer.Option(
            "--folds", metavar="0,1|all", help="Folds to average.", rich_help_panel=_TRAINED
        ),
    ] = "all",
    step: Annotated[
        float,
        typer.Option(
            "--step",
            parser=_STEP,
            help="Distance between tiles as a fraction of the patch, above 0 and at most 1.",
            rich_help_panel=_TRAINED,
        ),
    ] = 0.5,
    no_mirroring: Annotated[
        bool,
        typer.Option(
            "--no-mirroring", help="Do not average mirrored copies.", rich_help_panel=_TRAINED
        ),
    ] = False,
    no_postprocessing: Annotated[
        bool,
        typer.Option(
            "--no-postprocessing",
            help="Skip the steps after the network in the recipe.",
            rich_help_panel=_TRAINED,
        ),
    ] = False,
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE|CHANNELS",
            help=(
                "Steps around the network: a published pipeline (mama-mia-baseline, fme, "
                "vicorob, mic, mama-mia-sample), a mamamia_model.json, or the phase or "
                "subtraction of each channel, such as p1-p0; default: the model's own."
            ),
            rich_help_panel=_TRAINED,
        ),
    ] = "",
    fit_time: Annotated[
        bool,
        typer.Option(
            "--fit-time",
            help="Reduce accuracy to stay within --time-limit.",
            rich_help_panel=_TRAINED,
        ),
    ] = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Use half precision (bf16), which is faster but not exact.",
            rich_help_panel=_TRAINED,
        ),
    ] = False,
    workers: options.WorkersOption = 0,
    scheduler: options.SchedulerOption = "",
    registry: options.RegistryOption = None,
    resume: options.ResumeOption = False,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Segment the tumour in each case, and write OUT/ID.nii.gz and OUT/ID.json.

    To save time, --fit-time applies these reductions in order: no tiles outside the breast, bf16,
    step 0.75, no mirrored copies, fewer folds. Each reduction is printed and recorded in
    OUT/ID.json; the model itself never changes.

    Example: mamamia predict DATASET --model kinetic --out MASKS
    """
    from napari_mamamia.services.predict.cases import predict_data_set

    if fit_time and time_limit is None:
        raise typer.BadParameter(
            "--fit-time needs a time limit, but none is set: add --time-limit SECONDS"
        )
    models = model or [_DEFAULT_MODEL]
    _require_rule(models, fuse)
    choices = _make_choices(device, backend.value, folds, step, time_limit, fit_time, fast, recipe)
    choices = _add_switches(choices, not no_mirroring, not no_postprocessing, probability)
    choices = _on_threads(choices, threads, models, workers, scheduler)
    segmenter = _open_segmenter(models, fuse, choices, registry)
    opened = open_at(data_set, columns, layout, patient, visit)
    place = _find_place(workers, scheduler, time_limit, segmenter)
    existing = options.existing_policy(resume, overwrite)
    job = partial(
        predict_data_set,
        opened,
        segmenter,
        out,
        case or (),
        existing,
        place,
        probability=probability,
        registry=registry,
    )
    try:
        summary = run(job)
    finally:
        _close_segmenter(segmenter)
    _print_summary(summary, out, segmenter)


def _make_choices(
    device: str,
    backend: str,
    folds: str,
    step: float,
    limit_s: float | None,
    fit_time: bool,
    fast: bool,
    recipe: str,
) -> "RunChoices":
    from napari_mamamia.segmentation.model.planner import LADDER
    from napari_mamamia.services.predict.model_choice import RunChoices

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


def _add_switches(
    choices: "RunChoices", mirroring: bool, postprocessing: bool, keep_probability: bool
) -> "RunChoices":
    from dataclasses import replace

    return replace(
        choices,
        mirroring=mirroring,
        postprocessing=postprocessing,
        keep_probability=keep_probability,
    )


def _on_threads(
    choices: "RunChoices", threads: int | None, wanted: list[str], workers: int, scheduler: str
) -> "RunChoices":
    """Return the run settings with the number of threads; cluster nodes choose their own number."""
    from dataclasses import replace

    from napari_mamamia.segmentation.model.device import usual_threads

    if threads is not None and set(wanted) == {_DEFAULT_MODEL}:
        raise typer.BadParameter(
            f"--threads {threads} is for trained models, but {_DEFAULT_MODEL} uses one thread: "
            "leave --threads out"
        )
    if threads is None and not scheduler:
        threads = max(usual_threads() // max(workers, 1), 1)
    return replace(choices, threads=threads)


def _require_rule(wanted: list[str], fuse: FusionRule | None) -> None:
    """Raise an error if several models have no fusion rule, or a single model has one."""
    if fuse is not None and len(wanted) < 2:
        raise typer.BadParameter(
            f"--fuse {fuse.value} needs at least two models, but got only {wanted[0]}: add "
            "a model with --model, or leave --fuse out"
        )
    if fuse is None and len(wanted) > 1:
        raise typer.BadParameter(
            f"{len(wanted)} models ({', '.join(wanted)}) need a fusion rule: add --fuse mean "
            "(mean of "
            "the probabilities), --fuse majority (majority of the masks) or --fuse staple "
            "(STAPLE's estimate of the truth)"
        )


def _open_segmenter(
    wanted: list[str], fuse: FusionRule | None, choices: "RunChoices", registry: Path | None
) -> "Segmenter":
    from napari_mamamia.segmentation.worker.client import Worker
    from napari_mamamia.services.predict.model_choice import open_model, open_models

    if fuse is None:
        return open_model(wanted[0], choices, Worker(), registry)
    return open_models(wanted, fuse, choices, Worker(), registry)


def _close_segmenter(segmenter: "Segmenter") -> None:
    from napari_mamamia.segmentation.run.planned import PlannedSegmenter
    from napari_mamamia.services.predict.fused_models import FusedSegmenter

    if isinstance(segmenter, PlannedSegmenter | FusedSegmenter):
        segmenter.close()


def _find_place(
    workers: int, scheduler: str, limit_s: float | None, segmenter: "Segmenter"
) -> "Place":
    """Return where the batch runs; a trained model in this process enforces its own time limit."""
    from napari_mamamia.segmentation.run.planned import PlannedSegmenter
    from napari_mamamia.services.predict.fused_models import FusedSegmenter

    keeps_time = isinstance(segmenter, PlannedSegmenter | FusedSegmenter)
    has_own_limit = keeps_time and not workers and not scheduler
    return options.place_of(workers, scheduler, None if has_own_limit else limit_s)


def _print_summary(summary: "PredictSummary", out: Path, segmenter: "Segmenter") -> None:
    report_result(lambda: summary)
    for saved in summary.saved:
        print(f"{saved.case_id}  {saved.volume_mm3 / 1000:.2f} ml  {saved.seconds:.1f} s")
        for note in saved.notes:
            print(f"    {note}")
    if summary.skipped:
        print(f"{count_of(len(summary.skipped), 'case')} done in an earlier run")
    print(f"{count_of(len(summary.saved), 'prediction')} saved in {out} ({segmenter.note})")
    finish(summary.failures)
