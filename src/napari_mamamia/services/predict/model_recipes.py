"""Looking at a model's recipe and changing it, for the window's editor."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard
from napari_mamamia.segmentation.model.recipe import Recipe, presets, write_recipe
from napari_mamamia.segmentation.run.registry import (
    ModelEntry,
    default_registry,
    model_recipe,
    set_recipe,
)


@dataclass(frozen=True, slots=True)
class RecipeSetting:
    """What the editor shows of a model.

    Parameters
    ----------
    entry
        The model.
    recipe
        What is edited: the chosen one, or the model's own.
    own
        The model's own: beside it, or none, which is `Recipe()`.
    presets
        The published pipelines by name.
    place
        Where a recipe beside the model would lie.
    place_problem
        Why none can be written there, "" if one can.
    """

    entry: ModelEntry
    recipe: Recipe
    own: Recipe
    presets: tuple[tuple[str, Recipe], ...]
    place: Path
    place_problem: str = ""


def open_recipe(entry: ModelEntry, chosen: str = "") -> RecipeSetting:
    """Return what the editor shows; `chosen` as in `model_recipe`.

    Raises
    ------
    ModelError
        If the recipe beside the model cannot be read.
    """
    recipe_path = _find_recipe_path(entry.card)
    return RecipeSetting(
        entry,
        model_recipe(entry, chosen),
        _read_own_recipe(entry),
        presets(),
        recipe_path,
        _place_problem(entry.card, recipe_path),
    )


def keep_recipe(entry: ModelEntry, recipe: Recipe) -> ModelEntry:
    """Keep a recipe in the user's list of models; the model stays as it is.

    The model's own recipe is kept as "none of the user's".

    Raises
    ------
    SaveError
        If the list cannot be written.
    """
    report_progress(0, 1, "Keeping the recipe")
    new_entry = set_recipe(
        entry, None if recipe == _read_own_recipe(entry) else recipe, default_registry()
    )
    report_progress(1, 1, "Kept")
    return new_entry


def write_beside(entry: ModelEntry, recipe: Recipe, *, overwrite: bool = False) -> ModelEntry:
    """Write a recipe beside the model; the user's own then steps back for it.

    Raises
    ------
    SaveConflictError
        If there is one and `overwrite` is off.
    SaveError
        If the place cannot be written.
    """
    report_progress(0, 2, "Writing the recipe")
    write_recipe(recipe, _find_recipe_path(entry.card), overwrite=overwrite)
    report_progress(1, 2, "Keeping the model")
    changed = replace(entry, card=replace(entry.card, has_recipe=True))
    new_entry = set_recipe(changed, None, default_registry())
    report_progress(2, 2, "Written")
    return new_entry


def _read_own_recipe(entry: ModelEntry) -> Recipe:
    return model_recipe(replace(entry, recipe=None))


def _find_recipe_path(card: ModelCard) -> Path:
    """Return where a recipe lies beside a model: in its folder, or in that of its one file."""
    folder = card.path if card.path.is_dir() else card.path.parent
    return folder / card.inner / RECIPE_NAME if card.path.is_dir() else folder / RECIPE_NAME


def _place_problem(card: ModelCard, place: Path) -> str:
    if card.is_zip:
        return (
            f"a recipe beside the model should go into {card.path}, but a zip is not written to: "
            "unpack it, or save the recipe in your own list"
        )
    if not os.access(place.parent, os.W_OK):
        return (
            f"a recipe beside the model should go to {place}, but that folder cannot be written "
            "to: save the recipe in your own list"
        )
    return ""
