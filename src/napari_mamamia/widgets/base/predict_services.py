"""`PredictServices`: the calls of page Predict beyond running, so that tests can pass fakes."""

from collections.abc import Callable
from dataclasses import dataclass

from napari_mamamia.segmentation.model.segmenter import Segmenter
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.added_models import convert_in_isolation, other_models
from napari_mamamia.services.predict.convert_model import Converted, isolation_reason
from napari_mamamia.services.predict.doubt import Doubt, DoubtKind, doubt_kinds, doubt_of
from napari_mamamia.services.predict.input_pictures import (
    InputChannel,
    InputPictures,
    input_pictures,
    kinetic_channels,
    model_channels,
    shared_channels,
)
from napari_mamamia.services.predict.keep_prediction import (
    KeptPrediction,
    keep_prediction,
    kept_prediction,
)
from napari_mamamia.services.predict.model_choice import fused
from napari_mamamia.services.predict.model_recipes import (
    RecipeSetting,
    keep_recipe,
    open_recipe,
    write_beside,
)
from napari_mamamia.services.predict.offers import Offer


@dataclass(frozen=True, slots=True)
class PredictServices:
    """The services of page Predict; a field left out is the real one."""

    model_channels: Callable[..., tuple[InputChannel, ...]] = model_channels
    kinetic_channels: Callable[..., tuple[InputChannel, ...]] = kinetic_channels
    shared_channels: Callable[..., tuple[InputChannel, ...]] = shared_channels
    fused: Callable[..., Segmenter] = fused
    input_pictures: Callable[..., InputPictures] = input_pictures
    open_recipe: Callable[..., RecipeSetting] = open_recipe
    keep_recipe: Callable[..., ModelEntry] = keep_recipe
    write_beside: Callable[..., ModelEntry] = write_beside
    other_models: Callable[..., tuple[Offer, ...]] = other_models
    isolation_reason: Callable[[], str] = isolation_reason
    convert: Callable[..., Converted] = convert_in_isolation
    kept: Callable[..., KeptPrediction | None] = kept_prediction
    keep: Callable[..., KeptPrediction] = keep_prediction
    doubt_kinds: Callable[..., tuple[DoubtKind, ...]] = doubt_kinds
    doubt_of: Callable[..., Doubt] = doubt_of
