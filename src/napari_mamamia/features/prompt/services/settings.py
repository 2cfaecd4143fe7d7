"""Stored settings of prompt models, and the licences that the user has accepted."""

from dataclasses import replace
from typing import Final

from napari_mamamia.core.errors import Remedy
from napari_mamamia.features.prompt.segmentation.engine import (
    UNKNOWN_LICENCE,
    EngineInfo,
    LicenceError,
)
from napari_mamamia.io.workspace.preferences import load_preferences, save_preferences

_PREFIX: Final = "prompt "
_LICENCE: Final = "licence of "


def load_settings() -> dict[str, str]:
    """Return the stored settings of prompt models, by name."""
    stored = load_preferences().features
    return {name.removeprefix(_PREFIX): value for name, value in stored if name.startswith(_PREFIX)}


def save_settings(changes: dict[str, str]) -> None:
    """Store settings by name; other stored settings are not changed.

    Raises
    ------
    SaveError
        If the system does not allow writing.
    """
    preferences = load_preferences()
    merged = {**dict(preferences.features), **{f"{_PREFIX}{k}": v for k, v in changes.items()}}
    save_preferences(replace(preferences, features=tuple(sorted(merged.items()))))


def is_accepted(info: EngineInfo) -> bool:
    """Return whether the user has accepted the licence of a model with exactly this text."""
    return load_settings().get(_LICENCE + info.model) == info.licence


def accept_licence(info: EngineInfo) -> None:
    """Store that the user has accepted the licence of a model.

    Raises
    ------
    SaveError
        If the system does not allow writing.
    """
    save_settings({_LICENCE + info.model: info.licence})


def require_accepted(info: EngineInfo) -> None:
    """Raise `LicenceError` if the user has not accepted the licence of a model."""
    if is_accepted(info):
        return
    text = f"the licence {info.licence}"
    if info.licence == UNKNOWN_LICENCE:
        text = "a licence that the model does not state: ask its authors"
    raise LicenceError(
        f"the licence of the model was not accepted: {info.model} has {text}. This licence may "
        "also apply to masks made with the model",
        info.licence,
        info.model,
        remedies=(Remedy("accept_licence"),),
    )
