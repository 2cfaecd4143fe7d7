"""Table of model kinds, which defines how each kind is described, planned and loaded.

To add a kind, add its name and detection rule to `model/kinds.py`, a module with its card and
engine, and an entry in `MODEL_KINDS`. A package can add a kind through an entry point. torch and
MONAI are imported only by kinds that need them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from napari_mamamia.core.choices import Backend
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.plugins import Registry
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.bundle.card import bundle_card
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import (
    require_monai,
    require_onnx,
    require_openvino,
    require_torch,
)
from napari_mamamia.segmentation.model.engine import Engine
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles
from napari_mamamia.segmentation.model.planner import LADDER, Rung
from napari_mamamia.segmentation.network.card import network_card


@dataclass(frozen=True, slots=True)
class KindSpec:
    """Definition of a kind of model.

    Parameters
    ----------
    extras
        The optional dependencies (extras) of this software that the kind needs.
    given
        The file or folder that the user selects, as text for the documentation.
    suffixes
        File-name suffixes for the window's file dialog.
    is_folder
        Whether the user may select the model's folder.
    require
        A function that raises `MissingExtraError` unless the runtime is installed.
    tiles
        A function that returns the cost of a case without loading the model, or None if unknown.
    load
        A function that loads the model and reads its weights as data.
    card
        A function that returns the card; None for nnU-Net, because one folder may contain several
        models.
    rungs
        The reductions that the kind supports to meet a time limit.
    backends
        The backends that can be chosen by name, in addition to "auto".
    recognise
        A function that returns whether files are a model of this kind; None for the built-in kinds,
        which `model/kinds.py` recognises.
    """

    extras: tuple[str, ...]
    given: str
    suffixes: tuple[str, ...]
    require: Callable[[EngineSettings], None]
    tiles: Callable[[ModelCard, EngineSettings, Grid], TilePlan | None]
    load: Callable[[ModelCard, EngineSettings], Engine]
    card: Callable[[ModelFiles, str, bool], ModelCard] | None = None
    is_folder: bool = False
    rungs: tuple[Rung, ...] = LADDER
    backends: tuple[str, ...] = (Backend.TORCH, Backend.OPENVINO)
    recognise: Callable[[ModelFiles], bool] | None = None


def _require_network(settings: EngineSettings) -> None:
    require_torch()
    if settings.backend == "openvino":
        require_openvino()


def _require_onnx_file(settings: EngineSettings) -> None:
    _require_network(settings)
    if settings.backend != "openvino":
        require_onnx()


def _require_openvino_file(settings: EngineSettings) -> None:
    del settings  # always this backend: no other one reads the format
    require_torch()
    require_openvino()


def _require_bundle(settings: EngineSettings) -> None:
    _require_network(settings)
    require_monai()


def _nnunet_tiles(card: ModelCard, settings: EngineSettings, grid: Grid) -> TilePlan | None:
    from napari_mamamia.segmentation.nnunet.cost import tiles_from_plans

    return tiles_from_plans(card, settings, grid)


def _load_nnunet(card: ModelCard, settings: EngineSettings) -> Engine:
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    return load_nnunet(card, settings)


def _network_tiles(card: ModelCard, settings: EngineSettings, grid: Grid) -> TilePlan | None:
    from napari_mamamia.segmentation.network.cost import tiles_of_network

    return tiles_of_network(card, settings, grid)


def _load_network(card: ModelCard, settings: EngineSettings) -> Engine:
    from napari_mamamia.segmentation.network.engine import load_network

    return load_network(card, settings)


def _bundle_tiles(card: ModelCard, settings: EngineSettings, grid: Grid) -> TilePlan | None:
    from napari_mamamia.segmentation.bundle.cost import tiles_of_bundle

    return tiles_of_bundle(card, settings, grid)


def _load_bundle(card: ModelCard, settings: EngineSettings) -> Engine:
    report_progress(0, 1, "Starting MONAI")  # importing it takes seconds
    from napari_mamamia.segmentation.bundle.engine import load_bundle

    return load_bundle(card, settings)


_NETWORK: Final = KindSpec(
    extras=("segment",),
    given="the file, next to a recipe",
    suffixes=(),
    require=_require_network,
    tiles=_network_tiles,
    load=_load_network,
    card=network_card,
)
MODEL_KINDS: Final = Registry(
    "napari_mamamia.model_kinds",
    KindSpec,
    {
        ModelKind.NNUNET: KindSpec(
            extras=("segment",),
            given="the trained folder, or its zip",
            suffixes=(".zip",),
            require=_require_network,
            tiles=_nnunet_tiles,
            load=_load_nnunet,
            is_folder=True,
        ),
        ModelKind.MONAI_BUNDLE: KindSpec(
            extras=("bundle",),
            given="its folder, or its zip",
            suffixes=(".zip",),
            require=_require_bundle,
            tiles=_bundle_tiles,
            load=_load_bundle,
            card=bundle_card,
            is_folder=True,
            rungs=(Rung.TILES,),  # a bundle defines how it is run
        ),
        ModelKind.TORCHSCRIPT: replace(_NETWORK, suffixes=(".pt", ".ts")),
        ModelKind.EXPORTED: replace(_NETWORK, suffixes=(".pt2",)),
        ModelKind.ONNX: replace(
            _NETWORK,
            extras=("onnx",),
            suffixes=(".onnx",),
            require=_require_onnx_file,
            backends=(Backend.OPENVINO,),
        ),
        ModelKind.OPENVINO: replace(
            _NETWORK,
            extras=("segment", "openvino"),
            suffixes=(".xml",),
            require=_require_openvino_file,
            backends=(Backend.OPENVINO,),
        ),
        ModelKind.SAFETENSORS: replace(_NETWORK, suffixes=(".safetensors",)),
    },
    reserved=tuple(ModelKind),
)
"""The built-in kinds of model, followed by the kinds from installed packages."""


def require_installed(card: ModelCard, settings: EngineSettings) -> None:
    """Raise `MissingExtraError` unless the runtime of a model is installed; load nothing."""
    spec = MODEL_KINDS.get(card.kind)
    if spec is not None:
        spec.require(settings)


@reads("a model that can be run", "copy the model again from its source", ModelError)
def load_engine(card: ModelCard, settings: EngineSettings) -> Engine:
    """Load a model of any supported kind, and read its weights as data.

    Raises
    ------
    ModelError
        If the kind cannot be run, or the model cannot be loaded.
    MissingExtraError
        If the runtime is not installed.
    """
    if card.missing:
        raise ModelError("; ".join(card.missing))
    spec = MODEL_KINDS.get(card.kind)
    if spec is None:
        raise ModelError(
            f"expected {card.path} to be a model that can be run, but it is {card.kind}; choose a "
            "different model"
        )
    spec.require(settings)
    return spec.load(card, settings)
