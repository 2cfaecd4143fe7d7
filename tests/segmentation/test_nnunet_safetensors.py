"""Checkpoints as safetensors files: same numbers, same mask, and nothing that could run."""

import json
from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.errors import ModelError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.run.weights import recognise_model

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
pytest.importorskip("dynamic_network_architectures")

TWO = {"background": 0, "tumour": 1, "oedema": 2}
GRID = Grid((18, 22, 26), np.diag([-1.2, -0.9, 1.5, 1.0]))


def original(root, fold="0", name="checkpoint_final"):
    from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint

    return load_checkpoint(root / f"fold_{fold}" / f"{name}.pth")


def converted(root, fold="0", name="checkpoint_final"):
    """Put a safetensors file in the place of a fold's pickle; return the path."""
    from napari_mamamia.segmentation.nnunet.safetensors import write_safetensors

    pickled = root / f"fold_{fold}" / f"{name}.pth"
    path = pickled.with_suffix(".safetensors")
    write_safetensors(original(root, fold, name), path, "0" * 64)
    pickled.unlink()
    return path


def labels_of(root, **settings):
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    arrays = list(np.random.default_rng(4).integers(1, 90, (2, *GRID.shape)).astype(np.int16))
    chosen = EngineSettings(threads=1, **settings)
    engine = load_nnunet(recognise_model(root), chosen)
    return engine.predict(EngineInput(arrays, GRID)).labels


@pytest.mark.parametrize(
    "spec",
    [
        {"folds": ("0", "1"), "mirror": (0, 2), "seed": 3},
        {"residual": True, "mirror": (2,), "seed": 16, "labels": TWO},
        {"trainer": "nnUNetTrainerNoMirroring", "mirror": None, "spacing": (1.6, 1.0, 1.0)},
    ],
)
def test_the_mask_is_the_same_to_the_voxel(made, tmp_path, spec):
    root = made.write_model(tmp_path, made.Spec(**spec))
    before = labels_of(root)
    assert len(np.unique(before)) >= 2
    for fold in made.Spec(**spec).folds:
        converted(root, fold)
    card = recognise_model(root)
    assert card.checkpoints == ("checkpoint_final.safetensors",)
    assert not list(root.rglob("*.pth"))
    assert np.array_equal(labels_of(root), before)


def test_shared_numbers_are_stored_once_and_come_back_under_every_name(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    before = original(root)
    kept = {name: value.clone() for name, value in before.weights.items()}
    storages = {value.untyped_storage().data_ptr() for value in before.weights.values()}
    path = converted(root)
    assert len(storages) < len(kept)
    assert len(safetensors.load_file(path)) == len(storages)
    from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint

    after = load_checkpoint(path)
    assert set(after.weights) == set(kept)
    assert all(torch.equal(after.weights[name], value) for name, value in kept.items())
    assert (after.trainer, after.configuration) == ("nnUNetTrainer", "3d_fullres")
    assert after.mirror_axes == (0, 1, 2)
    with safetensors.safe_open(path, "pt") as stored:
        assert stored.metadata()["source_sha256"] == "0" * 64


def test_views_of_one_storage_that_differ_are_kept_apart(tmp_path):
    from napari_mamamia.segmentation.nnunet.safetensors import (
        Checkpoint,
        read_safetensors,
        write_safetensors,
    )

    whole = torch.arange(6.0).reshape(2, 3)
    whole[0, 0] = float("nan")
    weights = {"a": whole, "turned": whole.T, "row": whole[1], "again": whole, "one": whole.sum()}
    found = Checkpoint(tmp_path / "x", weights, "t", "c", ())
    assert write_safetensors(found, tmp_path / "x.safetensors", "") == 4
    again = read_safetensors(tmp_path / "x.safetensors").weights
    for name, value in weights.items():
        assert torch.equal(again[name].nan_to_num(7), value.nan_to_num(7)), name


def test_a_file_is_never_overwritten(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    (root / "fold_0" / "checkpoint_final.safetensors").write_text("mine")
    with pytest.raises(SaveConflictError):
        converted(root)
    assert (root / "fold_0" / "checkpoint_final.safetensors").read_text() == "mine"


def test_what_is_read_again_is_compared_to_the_bit(made, tmp_path, monkeypatch):
    from napari_mamamia.core.errors import SaveError
    from napari_mamamia.segmentation.nnunet import safetensors as nnunet_safetensors

    def damaging(tensors, path, text):
        name = next(iter(tensors))
        safetensors.save_file({**tensors, name: tensors[name] + 1e-6}, path, text)

    root = made.write_model(tmp_path, made.Spec())
    monkeypatch.setattr(nnunet_safetensors, "save_file", damaging)
    with pytest.raises(SaveError, match="they differ"):
        converted(root)
    assert [file.name for file in (root / "fold_0").iterdir()] == ["checkpoint_final.pth"]


def test_a_recipe_that_names_the_pickle_finds_the_converted_file(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    final = root / "fold_0" / "checkpoint_final.pth"
    final.rename(final.with_name("checkpoint_best.pth"))
    before = labels_of(root, checkpoint="checkpoint_best.pth")
    converted(root, name="checkpoint_best")
    assert np.array_equal(labels_of(root, checkpoint="checkpoint_best.pth"), before)


def test_a_cut_off_file_is_refused(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    path = converted(root)
    data = path.read_bytes()
    for kept in (0, 5, 300, len(data) - 4):
        path.write_bytes(data[:kept])
        with pytest.raises(ModelError, match="damaged or truncated"):
            labels_of(root)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "pt"}, "in its header is 'pt'"),
        ({"mirror_axes": "[0, 7]"}, r"among 0, 1, 2, but they are \[0, 7\]"),
        ({"mirror_axes": "[true]"}, "among 0, 1, 2"),
        ({"same": json.dumps({"x": "not there"})}, "expected x in .* to be stored as not there"),
        ({"same": "[" * 100_000}, "same in the header of .* cannot be read"),
        ({"same": "[1]"}, "tensors that share numbers"),
        ({"same": "{}"}, "it lacks"),
    ],
)
def test_a_header_that_is_not_ours_is_refused(made, tmp_path, change, said):
    root = made.write_model(tmp_path, made.Spec())
    path = converted(root)
    with safetensors.safe_open(path, "pt") as stored:
        texts = stored.metadata()
    safetensors.save_file(safetensors.load_file(path), path, {**texts, **change})
    with pytest.raises(ModelError, match=said):
        labels_of(root)


def test_the_safe_file_is_preferred_and_final_goes_before_best(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec())
    pickled = root / "fold_0" / "checkpoint_final.pth"
    data = pickled.read_bytes()
    converted(root)
    pickled.write_bytes(data)
    (root / "fold_0" / "checkpoint_best.safetensors").write_bytes(b"")
    assert recognise_model(root).checkpoints == (
        "checkpoint_final.safetensors",
        "checkpoint_final.pth",
        "checkpoint_best.safetensors",
    )
    card = replace(recognise_model(root), missing=())
    assert len(card.weights) == 3
