"""The model kind `threshold`: a file NAME.above with a number; brighter voxels are tumour."""

import json
from dataclasses import dataclass

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.card import ModelCard, summed
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    Ran,
    TilePlan,
)
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles
from napari_mamamia.segmentation.run.engines import KindSpec


def is_threshold(files: ModelFiles) -> bool:
    """Return whether a model is a file with the suffix ``.above``."""
    return files.path.is_file() and files.path.suffix == ".above"


def threshold_card(files: ModelFiles, kind: str, checksums: bool) -> ModelCard:
    """Return the description of the model, with one input channel and one label."""
    return ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        channels=("image",),
        labels=(("tumour", (1,)),),
        weights=tuple(summed(files, files.sizes, checksums)),
    )


@dataclass
class ThresholdEngine:
    """The loaded model."""

    above: float
    settings: EngineSettings

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost of a case: one tile, the whole image."""
        return TilePlan(1, 0, 1, 1, grid.shape, 0)

    def predict(self, given: EngineInput) -> EngineResult:
        """Label the voxels of one case."""
        labels = (given.arrays[0] > self.above).astype(np.uint8)
        return EngineResult(labels, Ran((), (), 1, 1, 1, 0.5, "cpu", "torch", "fp32", 1))

    def run_one_tile(self) -> None:
        """Do nothing: the time of a tile is not worth measuring."""

    def close(self) -> None:
        """Do nothing: there is no network to release."""


def load_threshold(card: ModelCard, settings: EngineSettings) -> ThresholdEngine:
    """Load the model."""
    return ThresholdEngine(json.loads(card.path.read_text())["above"], settings)


THRESHOLD = KindSpec(
    extras=(),
    given="a file with a number",
    suffixes=(".above",),
    require=lambda settings: None,
    tiles=lambda card, settings, grid: None,
    load=load_threshold,
    card=threshold_card,
    backends=(),
    recognise=is_threshold,
)
