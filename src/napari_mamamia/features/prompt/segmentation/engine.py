"""The protocol, the description and the errors of a prompt engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.plugins import Registry
from napari_mamamia.features.prompt.segmentation.prompts import Abilities, PlacedPrompt

UNKNOWN_LICENCE: Final = "unknown"
"""Licence of a model that states none."""


class EngineLostError(ModelError):
    """The engine ended, or its server no longer knows the session; the mask is unchanged.

    The next prompt opens the engine again, with the image and the mask.
    """


class PlainConnectionError(CaseError):
    """A server would be reached over the network without encryption; a user may confirm that."""


class LicenceError(ModelError):
    """The licence of a model was not accepted yet; `licence` and `model` say which."""

    def __init__(self, text: str, licence: str = "", model: str = "", **rest: Any) -> None:
        super().__init__(text, **rest)
        self.licence = licence
        self.model = model


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of an engine; each engine uses its own.

    Parameters
    ----------
    model
        The folder of the model, for engines on this computer: nnInteractive's, or that of a recipe.
    fold
        Its fold; "" for the only one.
    environment
        The Python environment that holds the model's package: its folder, or its python.
    device
        "cpu", "cuda" or "auto".
    server
        The address of a server, such as ``https://host:1527``.
    api_key
        The key that the server asks for; "" for none. It is never read from the environment.
    allow_plain_http
        Whether to send images over the network without encryption.
    """

    model: Path | None = None
    fold: str = ""
    environment: Path | None = None
    device: str = "auto"
    server: str = ""
    api_key: str = ""
    allow_plain_http: bool = False


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """A connected engine.

    Parameters
    ----------
    name
        Software with its version, such as ``nnInteractive 2.6.0``.
    model
        ``sha256:`` and the digest of the weights, or the address of the server.
    licence
        The licence of the weights, `UNKNOWN_LICENCE` if the model states none.
    abilities
        The prompts that it takes.
    has_undo
        Whether the engine can take back its last prompt.
    """

    name: str
    model: str
    licence: str
    abilities: Abilities
    has_undo: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A box of the image, and the bool mask in it."""

    box: Box
    mask: NDArray[np.bool_]


class PromptEngine(Protocol):
    """A prompt model; all methods but `close` may take long and report progress.

    Raises `EngineLostError` if it ended; `ModelError` and `CaseError` for other failures.
    """

    @property
    def is_open(self) -> bool:
        """Whether it is connected and has an image."""

    def connect(self) -> EngineInfo:
        """Load the model or claim a session of a server; no image is sent."""

    def set_image(self, image: NDArray[Any], spacing_mm: Sequence[float]) -> None:
        """Send an image ``(z, y, x)`` and its spacing; the mask is empty then."""

    def start_from(self, region: Region) -> None:
        """Forget all prompts, and begin from a mask."""

    def prompt(self, placed: PlacedPrompt) -> Region:
        """Return the box that the prompt changed, and the mask in it; empty for no change."""

    def undo(self, checksum: int) -> bool:
        """Undo the last prompt; return whether the mask then has this CRC-32."""

    def close(self) -> None:
        """End it; `connect` begins anew."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine in `PROMPT_ENGINES`.

    Parameters
    ----------
    name
        Its name, such as ``local``.
    text
        A noun phrase that describes it.
    make
        Returns an engine; raises `CaseError` if a setting is missing or refused.
    leaves
        Returns a sentence on what leaves the computer with these settings, "" for nothing.
    """

    name: str
    text: str
    make: Callable[[EngineSettings], PromptEngine]
    leaves: Callable[[EngineSettings], str]


def engines_registry(*built_in: EngineSpec) -> Registry[EngineSpec]:
    """Return the registry of engines; packages add theirs by an entry point."""
    return Registry(
        "napari_mamamia.prompt_engines", EngineSpec, {spec.name: spec for spec in built_in}
    )
