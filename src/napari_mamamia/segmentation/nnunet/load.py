"""Loading an nnU-Net model: which checkpoints, which plans, which network; then an engine of them.

Weights are read as data. A cascade brings the engine of its first stage, which lies beside it.
"""

from dataclasses import replace
from pathlib import Path

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import choose_device
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import model_cache, unpack
from napari_mamamia.segmentation.model.nnunet_plans import Plans, read_plans
from napari_mamamia.segmentation.nnunet.checkpoint import checkpoint_file, load_checkpoint
from napari_mamamia.segmentation.nnunet.cost import first_stage_of
from napari_mamamia.segmentation.nnunet.engine import NnUNetEngine
from napari_mamamia.segmentation.nnunet.network import build_network, put_weights, trainer_known
from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint


def load_nnunet(card: ModelCard, settings: EngineSettings | None = None) -> NnUNetEngine:
    """Load a model: unpack a zip, read weights as data, build the network.

    Raises
    ------
    ModelError
        If the card is of another kind of model, a fold or checkpoint is missing, the file is
        damaged or wants to run something, the trainer is unknown, or the weights do not fit.
    MissingExtraError
        If the backend is not installed.
    """
    settings = settings or EngineSettings()
    if card.kind is not ModelKind.NNUNET or card.missing:
        kind = f"{card.path} should be an nnU-Net v2 model, but is {card.kind.value}"
        raise ModelError("; ".join(card.missing) or f"{kind}: choose another")
    device = choose_device("cpu" if settings.backend == "openvino" else settings.device)
    folder = card.path
    if card.is_zip:
        folder = unpack(card.path, model_cache())
    report_progress(0, 2, "Loading the model")
    root = folder / card.inner if card.inner else folder
    checkpoints = tuple(_load_checkpoints(root, card, settings))
    trainer = checkpoints[0][1].trainer
    if not trainer_known(trainer) and not settings.accept_trainer:
        raise ModelError(
            f"{card.name} should come from one of nnU-Net's own trainers, but was made by "
            f"{trainer!r}, whose code is not at hand: if it uses the network of the plans, accept "
            'the trainer ("accept_trainer": true in the recipe)'
        )
    plans = _load_plans(root, checkpoints[0][1].configuration or card.configuration)
    report_progress(1, 2, "Loading the model")
    network = build_network(
        plans.configuration.architecture, plans.inputs, plans.labels.heads, trainer, str(root)
    )
    put_weights(network, checkpoints[0][1])
    engine = NnUNetEngine(
        card, plans, settings, device, network.to(device), checkpoints, _filled=checkpoints[0][0]
    )
    if plans.configuration.previous_stage:
        beside = replace(card, path=folder, is_zip=False)
        engine.first_stage = _first_stage(beside, plans, settings)
    report_progress(2, 2, "Loaded")
    return engine


def _first_stage(card: ModelCard, plans: Plans, settings: EngineSettings) -> NnUNetEngine:
    """Load the model whose labels a cascade's second stage refines; it lies beside it."""
    before = first_stage_of(card, plans, checksums=bool(card.sha256))
    folds = tuple(fold for fold in settings.folds if fold in before.folds)
    stage_settings = replace(settings, folds=folds, checkpoint="", keep_probability=False)
    return load_nnunet(before, stage_settings)


def _load_checkpoints(
    root: Path, card: ModelCard, settings: EngineSettings
) -> list[tuple[str, Checkpoint]]:
    folds = settings.folds or card.folds
    absent = [fold for fold in folds if fold not in card.folds]
    if absent:
        raise ModelError(
            f"{card.name} should have fold(s) {', '.join(folds)}, but {', '.join(absent)} is not "
            f"there; it has {', '.join(card.folds)}: choose among these, or copy the missing folder"
        )
    name = settings.checkpoint or next(iter(card.checkpoints), "")
    if not name:
        raise ModelError(
            f"the folds of {card.name} should share a checkpoint of one name, but have none in "
            "common: name one with the checkpoint setting"
        )
    files = {fold: checkpoint_file(root / f"fold_{fold}", name) for fold in folds}
    return [(fold, load_checkpoint(file)) for fold, file in files.items()]


def _load_plans(root: Path, configuration: str) -> Plans:
    texts = []
    for name in ("plans.json", "dataset.json"):
        try:
            with open_plain(root / name) as stream:
                texts.append(stream.read().decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"{root / name} should be readable, but {error}: copy the model again"
            ) from error
    return read_plans(texts[0], texts[1], configuration, str(root))
