"""`mamamia models`."""

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.converting import convert
from napari_mamamia.cli.given import Program
from napari_mamamia.cli.options import NameArgument, RegistryOption
from napari_mamamia.cli.printing import NOT_EVERY_CASE, run
from napari_mamamia.cli.wrapping import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from napari_mamamia.segmentation.model.card import ModelCard
    from napari_mamamia.segmentation.run.registry import ModelEntry


models = Program(help="Models that you added; nothing is ever downloaded.")


@models.command("add")
def add(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder, zip or file of a model.")],
    name: Annotated[str, typer.Option("--name", help="Name to give it (default: its own).")] = "",
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE",
            help="Published pipeline (mama-mia-baseline, fme, vicorob, mic, mama-mia-sample) or "
            "mamamia_model.json to keep for it; default: the one beside it.",
        ),
    ] = "",
    registry: RegistryOption = None,
) -> None:
    """Recognise a model without running anything of it, and keep where it is."""
    from napari_mamamia.segmentation.run.registry import add_model, default_registry

    entry = run(partial(add_model, path, registry or default_registry(), name, recipe))
    _print_entry(entry)
    print(
        f"added; use it with  mamamia predict DATASET --model {shlex.quote(entry.name)} --out DIR"
    )


@models.command("list")
def list_(registry: RegistryOption = None) -> None:
    """List the models that can be named in --model."""
    from napari_mamamia.segmentation.run.registry import default_registry, list_models

    entries = list_models(registry or default_registry())
    lines = [("kinetic", "needs no weights (kinetic threshold, not a trained model)")]
    for entry in entries:
        problem = f"cannot be used: {entry.problem}"
        lines.append((entry.name, problem if entry.problem else _in_a_line(entry.card)))
    width = max(len(name) for name, _ in lines)
    for name, what in lines:
        print(f"{name:<{width}}  {what}")
    if not entries:
        print("No model was added yet: add one with  mamamia models add PATH")


@models.command("show")
def show(model: NameArgument, registry: RegistryOption = None) -> None:
    """Show what is known of a model: inputs, labels, licence, checksums."""
    from napari_mamamia.segmentation.run.registry import default_registry, find_model

    _print_entry(find_model(model, registry or default_registry()))


@models.command("verify")
def verify(model: NameArgument, registry: RegistryOption = None) -> None:
    """Compare every file of weights with its checksum at the time of adding."""
    from napari_mamamia.segmentation.run.registry import default_registry, find_model, verify_model

    verification = run(partial(verify_model, find_model(model, registry or default_registry())))
    for name, problem in verification.files:
        print(f"{name}  {problem or 'unchanged'}")
    if not verification.is_whole:
        raise typer.Exit(NOT_EVERY_CASE)


def _in_a_line(card: "ModelCard") -> str:
    """Return what a model is; what its kind does not have is left out."""
    parts = [card.kind.value]
    if card.channels:
        parts.append(f"{len(card.channels)} channel(s)")
    if card.folds:
        parts.append(f"fold(s) {', '.join(card.folds)}")
    if card.sha256:
        parts.append(f"sha256 {card.sha256[:12]}")
    return ", ".join(parts)


def _print_entry(entry: "ModelEntry") -> None:
    rows = list(_list_facts(entry))
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:<{width}}  {value}")


def _list_facts(entry: "ModelEntry") -> "Iterator[tuple[str, str]]":
    """Yield what is known of a model; what its kind does not have is left out."""
    card = entry.card
    yield from (("name", entry.name), ("kind", card.kind.value), ("place", str(card.path)))
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
    beside = "beside the model" if card.has_recipe else "none: channel k is phase k"
    own_recipe = (
        None if entry.recipe is None else f"your own ({entry.recipe.title or 'without a title'})"
    )
    yield "recipe", own_recipe or beside
    licence = card.licence.strip().splitlines()
    yield "licence", licence[0] if licence else "unknown: ask its author"
    for weight in card.weights:
        yield "weights", f"{weight.name}  {weight.n_bytes} bytes  {weight.sha256}"


models.command("convert")(convert)
models.command("wrap")(wrap)
