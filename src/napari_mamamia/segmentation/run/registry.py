"""Store the models that a user has added, with one small JSON file for each.

The models themselves remain in their folders, which may be on a read-only disk. Nothing is
downloaded.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from platformdirs import user_data_path

from napari_mamamia.core import errors
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc
from napari_mamamia.io.files.foreign import explained
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.user_folders import absolute
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, WeightFile
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import open_files
from napari_mamamia.segmentation.model.recipe import (
    Recipe,
    channels_recipe,
    preset,
    presets,
    read_recipe,
    recipe_from,
    recipe_text,
)
from napari_mamamia.segmentation.model.recipe_input import channel_names
from napari_mamamia.segmentation.network.card import with_network
from napari_mamamia.segmentation.network.choices import require_network_choices
from napari_mamamia.segmentation.run.engines import MODEL_KINDS, load_engine
from napari_mamamia.segmentation.run.weights import recognise_model

_FORMAT: Final = "napari-mamamia model"
_VERSION: Final = 1
_OWN_NAMES: Final = ("kinetic",)
"""Names of built-in models, which have no JSON file."""


@dataclass(frozen=True, slots=True)
class _AddedModel:
    """The content of the JSON file of an added model; `weights` are (name, bytes, SHA-256)."""

    format: str
    version: int
    name: str
    path: Path
    inner: str
    added: str
    weights: tuple[tuple[str, int, str], ...]
    recipe: Mapping[str, Any] | None = None


_CODEC: Final = RecordCodec(_AddedModel, "add the model again", kind=errors.ModelError)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """An added model with its name and card.

    `recipe` is the recipe chosen by the user; None for the recipe next to the model, if there is
    one. `problem` is the reason why the model cannot be used now, such as a missing disk.
    """

    name: str
    card: ModelCard
    added: str = ""
    recipe: Recipe | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of checking the files of a model: each file with its problem, or ""."""

    name: str
    files: tuple[tuple[str, str], ...]

    @property
    def is_whole(self) -> bool:
        """Whether every file is unchanged since the model was added."""
        return not any(problem for _, problem in self.files)


def default_registry() -> Path:
    """Return the folder of the added models, which ``MAMAMIA_MODELS_DIR`` can change."""
    chosen = os.environ.get("MAMAMIA_MODELS_DIR")
    data_folder = user_data_path("napari-mamamia", appauthor=False)
    return Path(chosen) if chosen else Path(data_folder) / "models"


def add_model(path: Path, registry: Path, name: str = "", recipe: str = "") -> ModelEntry:
    """Recognise the model at `path` and store it under a name.

    `recipe` is the name of a preset or a file, whose contents are stored as the user's recipe; ""
    uses the model's own recipe.

    Raises
    ------
    ModelError
        If the model cannot be run, or the recipe does not fit it; nothing is stored then.
    SaveConflictError
        If another model has this name.
    SaveError
        If the registry cannot be written.
    """
    report_progress(0, 2, "Inspecting the model and computing its checksums")
    card = recognise_model(absolute(path))
    chosen_recipe = model_recipe(ModelEntry(card.name, card), recipe) if recipe else None
    if chosen_recipe is not None:
        card = with_network(card, chosen_recipe.network)
    require_runnable(card)
    if chosen_recipe is not None:
        _require_fits(chosen_recipe, card)
    _require_loads(card)
    entry = ModelEntry(
        file_name(name or card.name, "the name of a model"), card, now_utc(), chosen_recipe
    )
    by_name = {model.name.casefold(): model for model in list_models(registry)}
    same = by_name.get(entry.name.casefold())
    if entry.name.casefold() in _OWN_NAMES:
        raise errors.SaveConflictError(
            f"{entry.name!r} is the name of a built-in model; choose a different name"
        )
    if same is not None and (same.card.path, same.card.inner) != (card.path, card.inner):
        raise errors.SaveConflictError(
            f"the name {same.name!r} is already used by the model at {same.card.path}; choose a "
            "different name",
            remedies=(errors.Remedy("name", ("NAME",)),),
        )
    report_progress(1, 2, "Storing the model")
    _write_entry(entry, registry)
    return entry


def require_runnable(card: ModelCard) -> None:
    """Raise `ModelError` with the reason if a model cannot be run on this computer."""
    if card.missing:
        is_bundle = card.kind is ModelKind.MONAI_BUNDLE
        raise errors.ModelError(
            "; ".join(card.missing), remedies=(errors.Remedy(command="models wrap"),) * is_bundle
        )
    if card.kind not in MODEL_KINDS:
        raise errors.ModelError(
            f"expected {card.path} to be a model that can be run here, but it is a {card.kind}; "
            "choose a different model"
        )


def _require_fits(recipe: Recipe, card: ModelCard) -> None:
    """Raise `ModelError` if a model lacks the channels or folds that a recipe needs."""
    channel_names(recipe, len(card.channels))
    settings = recipe.settings(EngineSettings())
    require_network_choices(card, settings)
    absent = [fold for fold in settings.folds if fold not in card.folds]
    if absent:
        raise errors.ModelError(
            f"expected {card.name} to have the folds {', '.join(settings.folds)} of the recipe, "
            f"but it has {', '.join(card.folds) or 'none'}, without {', '.join(absent)}; choose a "
            "different recipe"
        )


def _require_loads(card: ModelCard) -> None:
    """Raise `ModelError` if the first fold of an nnU-Net model cannot be loaded."""
    if card.kind is not ModelKind.NNUNET:
        return
    report_progress(1, 2, "Loading the model once")
    # Without torch nothing is loaded here; what would run code is converted by its added name.
    with suppress(errors.MissingExtraError, errors.RefusedCheckpointError):
        load_engine(card, EngineSettings(folds=card.folds[:1], accept_trainer=True)).close()


def list_models(registry: Path) -> tuple[ModelEntry, ...]:
    """Return the added models sorted by name; an unusable model has a `problem`.

    Raises
    ------
    ModelError
        If the folder cannot be listed, because an empty result would mean that no model was added.
    """
    try:
        names = sorted(os.listdir(registry), key=str.casefold)  # noqa: PTH208 - glob hides errors
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise errors.ModelError(
            f"cannot read the folder of added models, {registry}: {error.strerror or error}; "
            "check its permissions, and try again"
        ) from error
    return tuple(_read_entry(registry / name) for name in names if name.endswith(".json"))


def find_model(wanted: str, registry: Path, recipe: str = "") -> ModelEntry:
    """Return the added model with this name, or the model at this path.

    `recipe` is chosen as in `model_recipe`; if it describes a network, the card contains this
    description.

    Raises
    ------
    ModelError
        If there is no such model, or it cannot be run.
    """
    entries = list_models(registry)
    for entry in entries:
        if entry.name == wanted:
            if entry.problem:
                raise errors.ModelError(entry.problem)
            return _describe_entry(entry, recipe)
    path = Path(wanted)
    if not path.exists():
        names = ", ".join((*_OWN_NAMES, *(entry.name for entry in entries)))
        raise errors.ModelError(
            f"expected {wanted!r} to be the name or path of a model, but it is neither; choose "
            f"one of {names}, or the path of a model"
        )
    card = recognise_model(absolute(path))
    return _describe_entry(ModelEntry(card.name, card), recipe)


def model_recipe(entry: ModelEntry, chosen: str = "") -> Recipe:
    """Return the recipe for running a model.

    `chosen` is the name of a preset, a file, channels such as ``p0,p1-p0``, or "". With "", the
    user's recipe is used, otherwise the recipe next to the model, otherwise none (channel k is
    phase k).
    """
    channels = channels_recipe(chosen)
    if channels is not None:
        return channels
    if chosen:
        names = [name for name, _ in presets()]
        if chosen not in names and not Path(chosen).exists():
            raise errors.ModelError(
                f"expected the recipe to be one of {', '.join(names)}, a file, or channels such as "
                f"p1-p0, but it is {chosen!r}; choose one of these"
            )
        return preset(chosen) if chosen in names else read_recipe(Path(chosen))
    if entry.recipe is not None:
        return entry.recipe
    card = entry.card
    if not card.has_recipe:
        return Recipe()
    name = f"{card.inner}/{RECIPE_NAME}" if card.inner else RECIPE_NAME
    return recipe_from(open_files(card.path).text(name), f"{card.path}/{name}")


def set_recipe(entry: ModelEntry, recipe: Recipe | None, registry: Path) -> ModelEntry:
    """Store the user's recipe for an added model; None restores the model's own recipe."""
    card = with_network(entry.card, None if recipe is None else recipe.network)
    changed = replace(entry, recipe=recipe, card=card)
    _write_entry(changed, registry)
    return changed


def forget_model(name: str, registry: Path) -> None:
    """Remove a model from the list without changing the model's own files."""
    (registry / f"{file_name(name)}.json").unlink(missing_ok=True)


def verify_model(entry: ModelEntry) -> Verified:
    """Compare every weights file with its stored checksum."""
    changes = []
    weights = entry.card.weights
    for number, weight in enumerate(weights):
        report_progress(number, len(weights), f"Checking {weight.name}")
        changes.append((weight.name, _compare_weight(entry.card, weight)))
    report_progress(len(weights), len(weights), "Checked")
    return Verified(entry.name, tuple(changes))


def _describe_entry(entry: ModelEntry, recipe: str) -> ModelEntry:
    """Return a model completed with the network description of its recipe, so that it can run."""
    network = model_recipe(entry, recipe).network
    described = replace(entry, card=with_network(entry.card, network))
    require_runnable(described.card)
    return described


def _compare_weight(card: ModelCard, weight: WeightFile) -> str:
    try:
        now = open_files(card.path).sha256(weight.name)
    except (errors.ModelError, OSError, KeyError) as error:
        return f"cannot be read: {error}"
    if now != weight.sha256:
        return (
            f"has changed: its sha256 is {now[:12]}…, but was {weight.sha256[:12]}… when it "
            "was added"
        )
    return ""


def _write_entry(entry: ModelEntry, registry: Path) -> None:
    added = _AddedModel(
        _FORMAT,
        _VERSION,
        entry.name,
        entry.card.path,
        entry.card.inner,
        entry.added,
        tuple((weight.name, weight.n_bytes, weight.sha256) for weight in entry.card.weights),
        None if entry.recipe is None else json.loads(recipe_text(entry.recipe)),
    )
    text = json.dumps(_CODEC.plain(added), indent=2, ensure_ascii=False) + "\n"
    write_text_atomically(registry / f"{entry.name}.json", text, overwrite=True)


def _read_entry(file: Path) -> ModelEntry:
    """Return the model in a JSON file; its files are inspected, but checksums are not computed."""
    path = file
    try:
        with explained(file, "a model that was added", "add the model again", errors.ModelError):
            added = _CODEC.record(read_json(file), file)
            path = added.path
            return _make_entry(added, file)
    except errors.ModelError as error:
        card = ModelCard(path, ModelKind.UNKNOWN, file.stem)
        return ModelEntry(file.stem, card, problem=str(error))


def _make_entry(added: _AddedModel, file: Path) -> ModelEntry:
    if added.format != _FORMAT:
        raise errors.ModelError(f"{file} does not describe an added model; add the model again")
    weights = tuple(WeightFile(*weight) for weight in added.weights)
    card = recognise_model(added.path, inner=added.inner, checksums=False)
    card = replace(card, weights=weights)
    recipe = None if added.recipe is None else recipe_from(json.dumps(added.recipe), str(file))
    card = with_network(card, None if recipe is None else recipe.network)
    require_runnable(card)
    return ModelEntry(added.name, card, added.added, recipe)
