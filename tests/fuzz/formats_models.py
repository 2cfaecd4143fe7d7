"""Models of every kind, small, with made-up weights; recognised and loaded as `predict` does."""

import json
import os
import shutil
import zipfile
from pathlib import Path

from harness import Format
from made import from_tests

_KEPT: dict[str, Path] = {}
"""What took long to make: copied for each format that needs it."""


def _networks() -> Path:
    if "networks" not in _KEPT:
        made = from_tests("segmentation/network_made")
        folder = Path(os.environ["MAMAMIA_CACHE_DIR"]).with_name("made-networks")
        made.write_all(folder)
        made.scripted(made.Tiny(), folder / "script" / "net.pt")
        made.recipe(folder / "exported", made.section())
        _KEPT["networks"] = folder
    return _KEPT["networks"]


def _network(kind: str):
    def make(folder: Path) -> Path:
        shutil.copytree(_networks() / kind, folder, dirs_exist_ok=True)
        return folder

    return make


def _bare_safetensors(folder: Path) -> Path:
    import torch
    from safetensors.torch import save_file

    made = from_tests("segmentation/network_made")
    said = json.dumps(made.section(architecture=made.unet_architecture()))
    save_file({"w": torch.zeros(3)}, folder / "net.safetensors", {"mamamia_network": said})
    return folder / "net.safetensors"


def _nnunet(folder: Path) -> Path:
    made = from_tests("segmentation/conftest")
    if "nnunet" not in _KEPT:
        kept = Path(os.environ["MAMAMIA_CACHE_DIR"]).with_name("made-nnunet")
        _KEPT["nnunet"] = made.write_model(kept, made.Spec())
    target = folder / _KEPT["nnunet"].name
    shutil.copytree(_KEPT["nnunet"], target)
    return target


def _nnunet_zip(folder: Path) -> Path:
    root = _nnunet(folder / "made")
    with zipfile.ZipFile(folder / "model.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(root.parent).as_posix())
    shutil.rmtree(folder / "made")
    return folder / "model.zip"


def _nnunet_safe(folder: Path) -> Path:
    from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint
    from napari_mamamia.segmentation.nnunet.safetensors import write_safetensors

    root = _nnunet(folder)
    old = root / "fold_0" / "checkpoint_final.pth"
    write_safetensors(load_checkpoint(old), old.with_suffix(".safetensors"), "ab" * 32)
    old.unlink()
    return root


def _bundle(folder: Path) -> Path:
    made = from_tests("segmentation/bundle_maker")
    (folder / "configs").mkdir()
    (folder / "models").mkdir()
    (folder / "configs" / "metadata.json").write_text(json.dumps(made.metadata()))
    (folder / "configs" / "inference.json").write_text(json.dumps(made.config()))
    shutil.copy(_networks() / "script" / "net.pt", folder / "models" / "model.ts")
    return folder


def _bundle_of_weights(folder: Path) -> Path:
    """A bundle whose network is MONAI's own class, with weights by name."""
    return from_tests("segmentation/bundle_maker").write_bundle(folder)


def _yaml_bundle(folder: Path) -> Path:
    import yaml

    _bundle(folder)
    told = folder / "configs" / "inference.json"
    told.with_suffix(".yaml").write_text(yaml.safe_dump(json.loads(told.read_text())))
    told.unlink()
    return folder


def _old_checkpoint(folder: Path) -> Path:
    """A checkpoint that wants to run something, in torch's older form: a bare pickle."""
    import collections

    import torch

    place = folder / "fold_0" / "checkpoint_final.pth"
    place.parent.mkdir(parents=True)
    content = {
        "network_weights": collections.Counter("ab"),
        "trainer_name": folder,
        "init_args": {},
    }
    torch.save(content, place, _use_new_zipfile_serialization=False)
    return folder


def _list_globals(path: Path) -> object:
    from napari_mamamia.segmentation.nnunet.checkpoint import unsafe_globals

    return unsafe_globals(path / "fold_0" / "checkpoint_final.pth")


def _paces(folder: Path) -> Path:
    (folder / "paces.json").write_text(json.dumps({"ab cpu": {"tile": 0.5, "other": 1.5}}))
    return folder


def _known_pace(folder: Path) -> object:
    from unittest.mock import patch

    from napari_mamamia.segmentation.run import paces

    with patch.object(paces, "model_cache", lambda: folder):
        return paces._read_paces(paces._find_path())


def _submission(folder: Path) -> Path:
    (folder / "model.py").write_text(
        "import torch\n\n\nclass Model:\n    def predict(self):\n        return 1\n"
    )
    (folder / "LICENSE").write_text("MIT\n")
    (folder / "requirements.txt").write_text("torch\n")
    return folder


def _read_submission(folder: Path) -> object:
    from napari_mamamia.segmentation.sandbox.external import read_submission

    return read_submission(folder)


def _recognise(path: Path) -> object:
    from napari_mamamia.segmentation.run.weights import recognise_model

    return recognise_model(path)


def _load(path: Path) -> object:
    """Recognise a model and load it, as the first case of `mamamia predict` does."""
    from napari_mamamia.segmentation.model.engine_settings import EngineSettings
    from napari_mamamia.segmentation.run.engines import load_engine

    card = _recognise(path)
    return load_engine(card, EngineSettings()).close()


def _convert(path: Path) -> object:
    """What `mamamia models convert` looks at before it refuses a checkpoint."""
    from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint, unsafe_globals

    checkpoint = path / "fold_0" / "checkpoint_final.pth"
    unsafe_globals(checkpoint)
    return load_checkpoint(checkpoint)


def _unpack(path: Path) -> object:
    from napari_mamamia.segmentation.model.nnunet_files import unpack

    return unpack(path, path.parent / "cache")


def _registry(folder: Path) -> Path:
    entry = {
        "format": "napari-mamamia model",
        "version": 1,
        "name": "m",
        "path": "/nowhere",
        "inner": "",
        "added": "2026",
        "weights": [["a", 3, "ab"]],
        "recipe": None,
    }
    (folder / "m.json").write_text(json.dumps(entry))
    return folder


def _list_models(folder: Path) -> object:
    from napari_mamamia.segmentation.run.registry import list_models

    return list_models(folder)


def _responses(folder: Path) -> Path:
    (folder / "predictions.csv").write_text("patient_id,pcr,score\nA,0,0.2\nB,1,0.9\n")
    return folder


def _take_responses(folder: Path) -> object:
    from napari_mamamia.features.challenge.services.submission.run_submission import take_responses

    return take_responses(folder, ("A", "B"))


_CARD = ("segmentation.run.weights.recognise_model", "segmentation.model.nnunet_files.open_files")
_ENGINE = ("segmentation.run.weights.recognise_model", "segmentation.run.engines.load_engine")
_SHAPES = ("segmentation.network.card.shapes_of",)

MODELS = (
    Format("nnunet-texts", _nnunet, _recognise, _CARD, (".json",)),
    Format(
        "nnunet",
        _nnunet,
        _load,
        (*_ENGINE, "segmentation.nnunet.checkpoint.load_checkpoint"),
        share=0.4,
    ),
    Format(
        "nnunet-pickles",
        _nnunet,
        _convert,
        ("segmentation.nnunet.checkpoint.unsafe_globals",),
        (".pth",),
    ),
    Format("nnunet-zip", _nnunet_zip, _recognise, _CARD),
    Format(
        "nnunet-unpack",
        _nnunet_zip,
        _unpack,
        ("segmentation.model.nnunet_files.unpack",),
        share=0.4,
    ),
    Format(
        "nnunet-safetensors",
        _nnunet_safe,
        _load,
        (
            "segmentation.nnunet.safetensors.read_safetensors",
            "segmentation.nnunet.safetensors.read_tensors",
        ),
        (".safetensors",),
        share=0.4,
        called="Dataset900_Made",
    ),
    Format("safetensors", _network("safetensors"), _load, _ENGINE, share=0.4),
    Format(
        "safetensors-header",
        _bare_safetensors,
        _recognise,
        ("segmentation.network.card.own_spec", *_CARD),
    ),
    Format(
        "onnx",
        _network("onnx"),
        _load,
        ("segmentation.network.onnx.read_onnx", *_SHAPES),
        share=0.4,
    ),
    Format(
        "onnx-header",
        _network("onnx"),
        _recognise,
        ("segmentation.network.onnx.read_onnx", *_CARD),
        (".onnx",),
    ),
    Format(
        "torchscript",
        _network("script"),
        _load,
        ("segmentation.network.script.read_script",),
        share=0.4,
    ),
    Format(
        "torch-export",
        _network("exported"),
        _load,
        ("segmentation.network.exported.read_exported", *_SHAPES),
        share=0.4,
    ),
    Format(
        "openvino",
        _network("ir"),
        _load,
        ("segmentation.model.openvino.opened_file",),
        (".xml", ".json"),
        share=0.3,
    ),
    Format("monai-bundle", _bundle, _recognise, _CARD, (".json",)),
    Format(
        "monai-bundle-run",
        _bundle_of_weights,
        _load,
        (*_ENGINE, "segmentation.bundle.engine._load_file"),
        (".json",),
        share=0.3,
        is_slow=True,
    ),
    Format("monai-bundle-yaml", _yaml_bundle, _recognise, _CARD, (".yaml",)),
    Format(
        "nnunet-old-pickle",
        _old_checkpoint,
        _list_globals,
        ("segmentation.nnunet.checkpoint.unsafe_globals",),
    ),
    Format("paces", _paces, _known_pace, ("segmentation.run.paces._read_paces",)),
    Format(
        "submission",
        _submission,
        _read_submission,
        ("segmentation.sandbox.external.read_submission",),
    ),
    Format("model-registry", _registry, _list_models, ()),
    Format(
        "submission-table",
        _responses,
        _take_responses,
        ("features.challenge.services.submission.run_submission.take_responses",),
    ),
)
