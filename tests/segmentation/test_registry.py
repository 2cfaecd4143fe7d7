"""Added models: kept by name, never copied, refused with the reason, checked by checksum."""

import errno
import json
import os

import pytest

from napari_mamamia.core.errors import ModelError, SaveConflictError, SaveError
from napari_mamamia.segmentation.model.card import RECIPE_NAME
from napari_mamamia.segmentation.model.recipe import Recipe, presets, write_recipe
from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint
from napari_mamamia.segmentation.run.registry import (
    add_model,
    find_model,
    forget_model,
    list_models,
    model_recipe,
    set_recipe,
    verify_model,
)

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")


@pytest.fixture
def registry(tmp_path):
    return tmp_path / "registry"


@pytest.fixture
def model(made, tmp_path):
    return made.write_model(tmp_path / "a", made.Spec())


def test_an_added_model_is_found_by_its_name_and_by_its_path(model, registry):
    entry = add_model(model, registry)
    assert entry.name == "Dataset900_Made_3d_fullres"
    assert [found.name for found in list_models(registry)] == [entry.name]
    by_name, by_path = find_model(entry.name, registry), find_model(str(model), registry)
    assert by_name.card.sha256 == by_path.card.sha256 == entry.card.sha256 != ""
    forget_model(entry.name, registry)
    assert list_models(registry) == ()
    assert (model / "plans.json").exists()


def test_two_models_of_one_name_need_two_names(made, tmp_path, model, registry):
    add_model(model, registry)
    other = made.write_model(tmp_path / "b", made.Spec(seed=1))
    with pytest.raises(SaveConflictError, match="is already used by"):
        add_model(other, registry)
    add_model(other, registry, "second")
    assert [entry.name for entry in list_models(registry)] == [
        "Dataset900_Made_3d_fullres",
        "second",
    ]
    add_model(model, registry)  # the same one again is no conflict


def test_the_own_models_name_is_not_given_away(model, registry):
    with pytest.raises(SaveConflictError, match="built-in model"):
        add_model(model, registry, "kinetic")


def test_what_cannot_be_run_is_refused_with_the_reason_and_not_kept(tmp_path, registry):
    old = tmp_path / "old"
    old.mkdir()
    (old / "plans.pkl").write_bytes(b"")
    with pytest.raises(ModelError, match="nnU-Net v1"):
        add_model(old, registry)
    (tmp_path / "net.onnx").write_bytes(b"")
    with pytest.raises(ModelError, match="a complete ONNX model, but it cannot be read"):
        add_model(tmp_path / "net.onnx", registry)
    assert list_models(registry) == ()


def test_a_network_that_cannot_be_built_is_refused_when_it_is_added(model, registry):
    plans = json.loads((model / "plans.json").read_text())
    architecture = plans["configurations"]["made_parent"]["architecture"]
    architecture["network_class_name"] = "nnunetv2.MedNeXt"
    (model / "plans.json").write_text(json.dumps(plans))
    with pytest.raises(ModelError, match="MedNeXt"):
        add_model(model, registry)
    assert list_models(registry) == ()


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."]
)
def test_weights_of_a_wrapped_network_are_those_of_the_network(model, prefix):
    path = model / "fold_0" / "checkpoint_final.pth"
    content = torch.load(path, weights_only=False)
    plain = content["network_weights"]
    content["network_weights"] = {prefix + name: value for name, value in plain.items()}
    torch.save(content, path)
    read = load_checkpoint(path).weights
    assert list(read) == list(plain)
    assert all(torch.equal(read[name], value) for name, value in plain.items())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_model_on_a_disk_that_cannot_be_written_is_added(model, registry):
    model.chmod(0o555)
    assert add_model(model, registry).card.usable


def test_a_registry_that_cannot_be_written_is_told(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError):
        add_model(model, tmp_path / "file" / "registry")


def test_nothing_is_written_beside_the_model(model, registry):
    before = sorted(path.name for path in model.rglob("*"))
    entry = add_model(model, registry)
    set_recipe(entry, Recipe("mine", channels=("p0", "p1")), registry)
    assert sorted(path.name for path in model.rglob("*")) == before
    assert find_model(entry.name, registry).recipe.title == "mine"


def test_a_recipe_is_the_chosen_one_else_the_users_else_the_one_beside_the_model(model, registry):
    entry = add_model(model, registry)
    assert model_recipe(entry) == Recipe()
    write_recipe(Recipe("beside"), model / RECIPE_NAME)
    entry = find_model(entry.name, registry)
    assert model_recipe(entry).title == "beside"
    entry = set_recipe(entry, Recipe("mine"), registry)
    assert model_recipe(entry).title == "mine"
    assert model_recipe(entry, "fme").title == "FME"


def test_weights_that_changed_are_found(model, registry):
    entry = add_model(model, registry)
    assert verify_model(entry).is_whole
    file = model / "fold_0" / "checkpoint_final.pth"
    file.write_bytes(file.read_bytes() + b"x")
    found = verify_model(find_model(entry.name, registry))
    assert not found.is_whole
    assert "has changed" in found.files[0][1]


def test_a_model_that_went_away_stays_in_the_list_with_the_reason(model, registry):
    entry = add_model(model, registry)
    model.rename(model.with_name("moved"))
    (found,) = list_models(registry)
    assert "does not exist" in found.problem
    with pytest.raises(ModelError, match="does not exist"):
        find_model(entry.name, registry)


def test_a_damaged_entry_does_not_hide_the_others(model, registry):
    add_model(model, registry)
    (registry / "broken.json").write_text("{")
    (registry / "foreign.json").write_text(json.dumps({"path": "x"}))
    problems = {entry.name: entry.problem for entry in list_models(registry)}
    assert problems.pop("Dataset900_Made_3d_fullres") == ""
    assert all(problems.values())
    assert set(problems) == {"broken", "foreign"}


def test_an_unknown_name_lists_the_known_ones(registry):
    with pytest.raises(ModelError, match="kinetic"):
        find_model("nothing-of-this-name", registry)


def test_a_recipe_that_is_given_with_a_model_is_kept_as_the_users_own(made, tmp_path):
    registry, root = tmp_path / "registry", made.write_model(tmp_path / "model", made.Spec())
    file = tmp_path / "mine.json"
    file.write_text(
        '{"format": "napari-mamamia recipe", "version": 1, '
        '"title": "mine", "channels": ["p1", "p0"]}'
    )
    added = add_model(root, registry, "mine", str(file))
    file.unlink()
    assert added.recipe.channels == ("p1", "p0")
    (listed,) = list_models(registry)
    assert listed.recipe == added.recipe
    assert not (root / RECIPE_NAME).exists()
    assert model_recipe(listed).title == "mine"


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ('{"channels": ["p0"]}', "channel"),
        ('{"folds": ["4"]}', "fold"),
        (
            '{"network": {"channels": ["a", "b"], "labels": {"t": 1}, "output": "logits"}}',
            "network",
        ),
        ('{"spacing_mm": [NaN, 1, 1]}', "spacing"),
        ("no recipe", "recipe"),
    ],
)
def test_a_recipe_that_does_not_fit_the_model_is_refused_and_nothing_is_kept(
    made, tmp_path, recipe, said
):
    root = made.write_model(tmp_path / "model", made.Spec())
    file = tmp_path / "mine.json"
    file.write_text(recipe.replace("{", '{"format": "napari-mamamia recipe", "version": 1, ', 1))
    with pytest.raises(ModelError, match=said):
        add_model(root, tmp_path / "registry", "mine", str(file))
    assert list_models(tmp_path / "registry") == ()


def test_the_command_adds_a_model_with_a_published_pipeline(made, tmp_path):
    from typer.testing import CliRunner

    from napari_mamamia.cli.app import app

    channels = tuple("abc")
    root = made.write_model(tmp_path / "model", made.Spec(channels=channels))
    words = ["models", "add", str(root), "--name", "mine", "--registry", str(tmp_path / "registry")]
    done = CliRunner().invoke(app, [*words, "--recipe", "no-such"])
    assert done.exit_code != 0
    known = [name for name, recipe in presets() if len(recipe.channels) == len(channels)]
    done = CliRunner().invoke(app, [*words, "--recipe", known[0]])
    assert done.exit_code == 0, done.output
    assert "your own (" in done.output
    (listed,) = list_models(tmp_path / "registry")
    assert listed.recipe == dict(presets())[known[0]]


def test_a_registry_that_cannot_be_listed_does_not_look_empty(model, registry, monkeypatch):
    def listdir(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    add_model(model, registry)
    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(
        ModelError, match=r"cannot read the folder of added models.*Input/output error"
    ):
        list_models(registry)
    monkeypatch.undo()
    assert [entry.name for entry in list_models(registry)] != []
    assert list_models(registry / "none") == ()
