"""`PredictServices`: the calls of page Predict beyond running, so that tests can pass fakes."""

from napari_mamamia.services.predict.added_models import convert_in_isolation, other_models
from napari_mamamia.services.predict.convert_model import isolation_reason
from napari_mamamia.services.predict.doubt import doubt_kinds, doubt_of
from napari_mamamia.services.predict.input_pictures import (
    input_pictures,
    kinetic_channels,
    model_channels,
    shared_channels,
)
from napari_mamamia.services.predict.keep_prediction import (
    keep_prediction,
    kept_prediction,
)
from napari_mamamia.services.predict.model_choice import fused
from napari_mamamia.services.predict.model_recipes import (
    keep_recipe,
    open_recipe,
    write_beside,
)
from napari_mamamia.widgets.base.service_set import ServiceSet


class PredictServices(ServiceSet):
    """The services of page Predict; a field left out is the real one."""

    model_channels = staticmethod(model_channels)
    kinetic_channels = staticmethod(kinetic_channels)
    shared_channels = staticmethod(shared_channels)
    fused = staticmethod(fused)
    input_pictures = staticmethod(input_pictures)
    open_recipe = staticmethod(open_recipe)
    keep_recipe = staticmethod(keep_recipe)
    write_beside = staticmethod(write_beside)
    other_models = staticmethod(other_models)
    isolation_reason = staticmethod(isolation_reason)
    convert = staticmethod(convert_in_isolation)
    kept = staticmethod(kept_prediction)
    keep = staticmethod(keep_prediction)
    doubt_kinds = staticmethod(doubt_kinds)
    doubt_of = staticmethod(doubt_of)
