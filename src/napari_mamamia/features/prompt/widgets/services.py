"""Service functions of the Prompt page, which tests can replace one by one."""

from napari_mamamia.features.prompt.segmentation.engine import EngineSettings, PromptEngine
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
from napari_mamamia.features.prompt.services.session import run_prompt
from napari_mamamia.features.prompt.services.settings import (
    accept_licence,
    is_accepted,
    load_settings,
    save_settings,
)
from napari_mamamia.widgets.base.service_record import ServiceSet


def make_engine(name: str, settings: EngineSettings) -> PromptEngine:
    """Make the engine with a given name, which is not connected yet."""
    return PROMPT_ENGINES[name].make(settings)


class PromptServices(ServiceSet):
    """The service functions of the Prompt page; the default of each field is the real function."""

    make_engine = staticmethod(make_engine)
    run_prompt = staticmethod(run_prompt)
    is_accepted = staticmethod(is_accepted)
    accept_licence = staticmethod(accept_licence)
    load_settings = staticmethod(load_settings)
    save_settings = staticmethod(save_settings)
