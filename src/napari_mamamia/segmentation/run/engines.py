"""`Engine`: a loaded model of any kind, and the one place that picks what loads which kind."""

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import (
    require_monai,
    require_onnx,
    require_openvino,
    require_torch,
)
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings, TilePlan
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind


class Engine(Protocol):
    """A model loaded once, kept warm, and run on any number of cases."""

    settings: EngineSettings

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return what a case on `grid` would cost."""
        ...

    def predict(
        self,
        arrays: Sequence[NDArray[Any]],
        grid: Grid,
        *,
        region: Box | None = None,
        deadline: float | None = None,
    ) -> EngineResult:
        """Label one case; progress comes with every tile.

        Parameters
        ----------
        arrays
            One ``(z, y, x)`` volume for each of the model's channels, on `grid`.
        region
            Box of the case outside which everything becomes background.
        deadline
            Value of ``time.monotonic()`` at which to stop.
        """
        ...

    def run_one_tile(self) -> None:
        """Run the network once on an empty tile, to measure how long it takes."""
        ...

    def close(self) -> None:
        """Let go of the network, and give a graphics card its memory back."""
        ...


def require_installed(card: ModelCard, settings: EngineSettings) -> None:
    """Raise `MissingExtraError` unless what runs such a model is installed; nothing is loaded."""
    require_torch()
    if settings.backend == "openvino" or card.kind is ModelKind.OPENVINO:
        require_openvino()
    elif card.kind is ModelKind.ONNX:
        require_onnx()
    if card.kind is ModelKind.MONAI_BUNDLE:
        require_monai()


@reads("a model that can be run", "copy it again from where it came from", ModelError)
def load_engine(card: ModelCard, settings: EngineSettings) -> Engine:
    """Load a model of any kind that can be run; its weights are read as data.

    Raises
    ------
    ModelError
        If the kind cannot be run, or the model cannot be loaded; the message says why.
    MissingExtraError
        If what runs it is not installed.
    """
    if card.missing:
        raise ModelError("; ".join(card.missing))
    require_installed(card, settings)
    if card.kind is ModelKind.NNUNET:
        from napari_mamamia.segmentation.nnunet.load import load_nnunet

        return load_nnunet(card, settings)
    if card.kind in NETWORK_KINDS:
        from napari_mamamia.segmentation.network.engine import load_network

        return load_network(card, settings)
    if card.kind is ModelKind.MONAI_BUNDLE:
        report_progress(0, 1, "Starting MONAI")  # importing it takes seconds
        from napari_mamamia.segmentation.bundle.engine import load_bundle

        return load_bundle(card, settings)
    raise ModelError(
        f"{card.path} should be a model that can be run, but is {card.kind.value}: choose another"
    )
