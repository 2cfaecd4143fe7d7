"""Recipes of added models: opened, kept in the user's list, written beside the model."""

from dataclasses import replace

import pytest

from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, WeightFile
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.recipe import Recipe, preset, read_recipe, write_recipe
from napari_mamamia.segmentation.run.registry import ModelEntry, list_models, model_recipe
from napari_mamamia.services.predict.model_recipes import keep_recipe, open_recipe, write_beside

MINE = Recipe("Mine", channels=("p0", "p1-p0"))


@pytest.fixture
def registry(tmp_path, monkeypatch):
    folder = tmp_path / "registry"
    monkeypatch.setenv("MAMAMIA_MODELS_DIR", str(folder))
    return folder


@pytest.fixture
def entry(tmp_path, registry):
    """A model's folder with nothing in it; only its card is looked at."""
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    weights = (WeightFile("inner/fold_0/checkpoint_final.pth", 10, "ab" * 32),)
    card = ModelCard(folder, ModelKind.NNUNET, "made", inner="inner", folds=("0",), weights=weights)
    return ModelEntry("made", card)


def test_a_model_without_a_recipe_opens_with_none_and_says_where_one_would_lie(entry, tmp_path):
    found = open_recipe(entry)
    assert (found.recipe, found.own) == (Recipe(), Recipe())
    assert found.place == tmp_path / "model" / "inner" / RECIPE_NAME
    assert found.place_problem == ""


def test_the_users_own_recipe_is_opened_before_the_models(entry):
    write_recipe(preset("mic"), entry.card.path / "inner" / RECIPE_NAME)
    both = replace(entry, card=replace(entry.card, has_recipe=True), recipe=MINE)
    found = open_recipe(both)
    assert (found.recipe, found.own) == (MINE, preset("mic"))
    assert open_recipe(both, "fme").recipe == preset("fme")


def test_a_kept_recipe_is_there_for_the_next_window(entry, registry):
    kept = keep_recipe(entry, MINE)
    assert model_recipe(kept) == MINE
    assert list(entry.card.path.rglob("*.json")) == []
    assert [one.name for one in list_models(registry)] == ["made"]


def test_keeping_the_models_own_recipe_is_keeping_none(entry):
    edited = keep_recipe(entry, MINE)
    assert keep_recipe(edited, Recipe()).recipe is None


def test_a_recipe_beside_the_model_takes_the_place_of_the_users(entry):
    kept = write_beside(replace(entry, recipe=Recipe("old")), MINE)
    assert read_recipe(entry.card.path / "inner" / RECIPE_NAME) == MINE
    assert kept.recipe is None
    assert model_recipe(kept) == MINE


def test_a_recipe_beside_the_model_is_never_replaced_unasked(entry):
    write_beside(entry, MINE)
    with pytest.raises(SaveConflictError):
        write_beside(entry, Recipe("other"))
    assert read_recipe(entry.card.path / "inner" / RECIPE_NAME) == MINE
    write_beside(entry, Recipe("other"), overwrite=True)
    assert read_recipe(entry.card.path / "inner" / RECIPE_NAME).title == "other"


def test_a_zip_is_not_written_to(entry, tmp_path):
    path = tmp_path / "made.zip"
    path.touch()
    found = open_recipe(replace(entry, card=replace(entry.card, path=path, is_zip=True)))
    assert "a zip archive, which cannot be changed" in found.place_problem
