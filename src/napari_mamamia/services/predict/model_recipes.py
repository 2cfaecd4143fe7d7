"""Read and change the recipe of a model for the window's editor."""

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
    """The state of the recipe editor for a model.

    Parameters
    ----------
    entry
        The model.
    recipe
        The recipe in the editor, which is the user's or the model's own.
    own
        The model's own recipe from the file next to the model, or `Recipe()` if there is no file.
    presets
        The presets of published pipelines by name.
    place
        The path of the recipe file next to the model.
    place_problem
        The reason why this file cannot be written, or "".
    """

    entry: ModelEntry
    recipe: Recipe
    own: Recipe
    presets: tuple[tuple[str, Recipe], ...]
    place: Path
    place_problem: str = ""


def open_recipe(entry: ModelEntry, chosen: str = "") -> RecipeSetting:
    """Return the state of the editor; `chosen` is as in `model_recipe`.

    Raises
    ------
    ModelError
        If the recipe file next to the model cannot be read.
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
    """Store a recipe in the user's list of models; the model itself is not changed.

    If the recipe equals the model's own, the user's recipe is removed from the list.

    Parameters
    ----------
    entry
        The added model.
    recipe
        The new recipe of the model.

    Raises
    ------
    SaveError
        If the list cannot be written.
    """
    report_progress(0, 1, "Storing the recipe")
    new_entry = set_recipe(
        entry, None if recipe == _read_own_recipe(entry) else recipe, default_registry()
    )
    report_progress(1, 1, "Kept")
    return new_entry


def write_beside(entry: ModelEntry, recipe: Recipe, *, overwrite: bool = False) -> ModelEntry:
    """Write a recipe file next to the model, and remove the user's recipe from the list.

    Parameters
    ----------
    entry
        The added model.
    recipe
        The new recipe of the model.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is False.
    SaveError
        If the folder cannot be written.
    """
    report_progress(0, 2, "Writing the recipe")
    write_recipe(recipe, _find_recipe_path(entry.card), overwrite=overwrite)
    report_progress(1, 2, "Storing the model")
    changed = replace(entry, card=replace(entry.card, has_recipe=True))
    new_entry = set_recipe(changed, None, default_registry())
    report_progress(2, 2, "Written")
    return new_entry


def _read_own_recipe(entry: ModelEntry) -> Recipe:
    return model_recipe(replace(entry, recipe=None))


def _find_recipe_path(card: ModelCard) -> Path:
    """Return the path of the recipe file in the folder that is, or contains, the model."""
    folder = card.path if card.path.is_dir() else card.path.parent
    return folder / card.inner / RECIPE_NAME if card.path.is_dir() else folder / RECIPE_NAME


def _place_problem(card: ModelCard, place: Path) -> str:
    if card.is_zip:
        return (
            f"expected {card.path} to be a folder for the recipe, but it is a zip archive, which "
            "cannot be changed; unpack the archive, or save the recipe in your own list"
        )
    if not os.access(place.parent, os.W_OK):
        return (
            f"the recipe cannot be saved next to the model as {place}, because the folder is not "
            "writable; save the recipe in your own list"
        )
    return ""
