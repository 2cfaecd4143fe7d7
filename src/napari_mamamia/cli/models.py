"""The commands of `mamamia models`, which add, list, check, convert and wrap models."""

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.given import Program
from napari_mamamia.cli.options import NameArgument, RegistryOption
from napari_mamamia.cli.printing import NOT_EVERY_CASE, run
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.names import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from napari_mamamia.segmentation.model.card import ModelCard
    from napari_mamamia.segmentation.run.registry import ModelEntry

from typing import Final

from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.options import AsRootOption
from napari_mamamia.cli.quantities import GIGABYTES, INDEX, SECONDS, Quantity

_CLASS: Final = Quantity(
    "a value of its output", 0, 65535, "", "enter the value of the tumour", is_whole=True
)


def wrap(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a MONAI bundle.")],
    phase: Annotated[
        list[int],
        typer.Option(
            "--phase",
            parser=INDEX,
            help=("Phase for the next input image, 0 before contrast; repeatable."),
        ),
    ],
    label: Annotated[
        list[int],
        typer.Option("--label", parser=_CLASS, help="Output value that means tumour; repeatable."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New folder to write.")],
) -> None:
    """Convert a MONAI bundle that `add` rejects into a submission that runs in a sandbox.

    This command runs no code from the bundle. MONAI must be installed in the Python that runs the
    submission (--python).

    Example: mamamia models wrap BUNDLE --phase 0 --phase 1 --label 1 --out SUBMISSION
    """
    from napari_mamamia.services.predict.wrap_bundle import wrap_bundle

    submission = wrap_bundle(bundle, out, phase, label)
    print(f"{submission.files} files, {submission.n_bytes / 10**6:.1f} MB, saved in {out}")
    place = shlex.quote(str(out))
    print(f"run it:  mamamia run-submission {place} DATASET --task segmentation --out DIR")


_GIGABYTE: Final = 10**9


_IN_ROOM: Final = Where(
    "with --isolated, for the sandbox",
    lambda given: bool(given["isolated"]),
    lambda given: "without it",
)
OPTIONS: Final[dict[str, Where]] = dict.fromkeys(
    ("model", "out", "isolated", "registry"), ALWAYS
) | dict.fromkeys(("time_limit", "memory_limit", "as_root"), _IN_ROOM)
"""The conditions under which each parameter of `models convert` applies.

Add an entry for each new parameter.
"""


def convert(
    context: typer.Context,
    model: NameArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New folder to write.")],
    isolated: Annotated[
        bool,
        typer.Option("--isolated", help="Open checkpoints that contain code, in a sandbox."),
    ] = False,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", metavar="SECONDS", parser=SECONDS, help="Time limit in the sandbox."
        ),
    ] = 120.0,
    memory_limit: Annotated[
        float | None,
        typer.Option(
            "--memory-limit",
            metavar="GB",
            parser=GIGABYTES,
            help="Memory limit in the sandbox (default: by size).",
        ),
    ] = None,
    as_root: AsRootOption = False,
    registry: RegistryOption = None,
) -> None:
    """Convert an nnU-Net model to the safetensors format, which cannot contain code.

    The predicted masks do not change. A checkpoint that contains code is an error; with --isolated,
    the checkpoint is opened in a sandbox (bubblewrap), and only its numbers are extracted.

    Example: mamamia models convert breast --out CONVERTED
    """
    from napari_mamamia.segmentation.nnunet.isolated import SandboxLimits
    from napari_mamamia.segmentation.run.registry import default_registry, find_model
    from napari_mamamia.services.predict.convert_model import convert_model

    refuse_idle(context, OPTIONS)
    entry = find_model(model, registry or default_registry())
    limits = SandboxLimits(time_limit, int((memory_limit or 0) * _GIGABYTE))
    job = partial(
        convert_model,
        entry.card,
        out,
        isolated,
        recipe=entry.recipe,
        limits=limits,
        as_root=as_root,
    )
    conversion = run(job)
    for file in conversion.files:
        print(f"{file.name}  {file.tensors} tensors  {file.n_bytes / 10**6:.1f} MB")
        print(f"    from sha256 {file.source_sha256}")
    if conversion.isolation:
        print(f"opened      {conversion.isolation}")
    print(f"saved in    {out}")


models = Program(help="List, add and check your own models; nothing is downloaded.")


@models.command("add")
@reports_result
def add(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder, zip or file of a model.")],
    name: Annotated[
        str, typer.Option("--name", help="Name in the list (default: its own name).")
    ] = "",
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE|CHANNELS",
            help=(
                "Published pipeline (mama-mia-baseline, fme, vicorob, mic, mama-mia-sample), "
                "mamamia_model.json or channels such as p1-p0, stored with the model; default: the "
                "file next to the model."
            ),
        ),
    ] = "",
    registry: RegistryOption = None,
) -> None:
    """Detect the type of a model without running its code, and register its location.

    Example: mamamia models add Dataset101_Breast.zip --name breast
    """
    from napari_mamamia.segmentation.run.registry import add_model, default_registry

    entry = run(partial(add_model, path, registry or default_registry(), name, recipe))
    report_result(lambda: entry)
    _print_entry(entry)
    print(
        f"added; use it with  mamamia predict DATASET --model {shlex.quote(entry.name)} --out DIR"
    )


@models.command("list")
@reports_result
def list_(registry: RegistryOption = None) -> None:
    """List the models that --model accepts by name.

    Example: mamamia models list
    """
    from napari_mamamia.segmentation.run.registry import default_registry, list_models

    entries = list_models(registry or default_registry())
    report_result(lambda: [{"name": "kinetic", "card": None}, *entries])
    lines = [("kinetic", "needs no weights (kinetic threshold, not a trained model)")]
    for entry in entries:
        problem = f"cannot be used: {entry.problem}"
        lines.append((entry.name, problem if entry.problem else _in_a_line(entry.card)))
    width = max(len(name) for name, _ in lines)
    for name, what in lines:
        print(f"{name:<{width}}  {what}")
    if not entries:
        print("No models added yet: add a model with  mamamia models add PATH")


@models.command("show")
@reports_result
def show(model: NameArgument, registry: RegistryOption = None) -> None:
    """Show the description of a model: inputs, labels, licence, checksums.

    Example: mamamia models show breast
    """
    from napari_mamamia.segmentation.run.registry import default_registry, find_model

    entry = find_model(model, registry or default_registry())
    report_result(lambda: entry)
    _print_entry(entry)


@models.command("verify")
@reports_result
def verify(model: NameArgument, registry: RegistryOption = None) -> None:
    """Compare every weights file with the checksum that was stored when the model was added.

    Example: mamamia models verify breast
    """
    from napari_mamamia.segmentation.run.registry import default_registry, find_model, verify_model

    verification = run(partial(verify_model, find_model(model, registry or default_registry())))
    report_result(lambda: verification)
    for name, problem in verification.files:
        print(f"{name}  {problem or 'unchanged'}")
    if not verification.is_whole:
        raise typer.Exit(NOT_EVERY_CASE)


def _in_a_line(card: "ModelCard") -> str:
    """Describe a model in one line, with only the fields that apply to its kind."""
    parts = [card.kind]
    if card.channels:
        parts.append(count_of(len(card.channels), "channel"))
    if card.folds:
        parts.append(f"folds {', '.join(card.folds)}")
    if card.sha256:
        parts.append(f"sha256 {card.sha256[:12]}")
    return ", ".join(parts)


def _print_entry(entry: "ModelEntry") -> None:
    rows = list(_list_facts(entry))
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:<{width}}  {value}")


def _list_facts(entry: "ModelEntry") -> "Iterator[tuple[str, str]]":
    """Yield the fields of a model's description that apply to its kind."""
    card = entry.card
    yield from (("name", entry.name), ("kind", card.kind), ("place", str(card.path)))
    for number, name in enumerate(card.channels):
        yield "channel", f"{number}: {name}"
    for name, values in card.labels:
        yield "label", f"{name} = {', '.join(map(str, values))}"
    for label, text in (("folds", ", ".join(card.folds)), ("trainer", card.trainer)):
        if text:
            yield label, text
    for fact, value in card.facts:
        if value not in (None, False):
            yield fact.replace("_", " "), str(value)
    default = (
        "none: channel k is phase k"
        if len(card.channels) > 1
        else "none: specify the phase of the channel with --recipe, such as --recipe p1-p0"
    )
    recipe = "next to the model" if card.has_recipe else default
    own_recipe = (
        None if entry.recipe is None else f"your own ({entry.recipe.title or 'without a title'})"
    )
    yield "recipe", own_recipe or recipe
    licence = card.licence.strip().splitlines()
    yield "licence", licence[0] if licence else "unknown: ask the author of the model"
    for weight in card.weights:
        yield "weights", f"{weight.name}  {weight.n_bytes} bytes  {weight.sha256}"


models.command("convert")(convert)
models.command("wrap")(wrap)
