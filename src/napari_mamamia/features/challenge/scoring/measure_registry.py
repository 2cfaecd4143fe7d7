"""Registries of measures and of the models that measures use; packages can add to both."""

from types import MappingProxyType
from typing import Final

from napari_mamamia.core.plugins import Registry
from napari_mamamia.features.challenge.scoring.image_measures import IMAGE_MEASURES, IMAGE_MODELS
from napari_mamamia.features.challenge.scoring.measures import (
    CLASS_MEASURES,
    ChallengeMeasure,
    ChallengeModel,
)

MEASURES: Final = Registry(
    "napari_mamamia.challenge_measures",
    ChallengeMeasure,
    MappingProxyType({measure.name: measure for measure in (*CLASS_MEASURES, *IMAGE_MEASURES)}),
)
MODELS: Final = Registry(
    "napari_mamamia.challenge_models",
    ChallengeModel,
    MappingProxyType({model.name: model for model in IMAGE_MODELS}),
)
