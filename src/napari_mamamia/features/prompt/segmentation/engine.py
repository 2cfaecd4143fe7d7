"""The interface, the settings and the errors of a prompt engine."""

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
"""Licence name for a model that does not state its licence."""


class EngineLostError(ModelError):
    """Error raised if the engine ended or its server closed the session; the mask is unchanged.

    The next prompt opens the engine again, with the image and the mask.
    """


class PlainConnectionError(CaseError):
    """Error raised if a connection to a server is not encrypted, unless the user allows it."""


class LicenceError(ModelError):
    """Error raised if the user has not accepted the licence of a model; both are attributes."""

    def __init__(self, text: str, licence: str = "", model: str = "", **rest: Any) -> None:
        super().__init__(text, **rest)
        self.licence = licence
        self.model = model


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings for prompt engines; each engine uses only some of them.

    Parameters
    ----------
    model
        For engines on this computer: the folder of an nnInteractive model, or of a model with a
        recipe.
    fold
        The model's fold; "" if it has only one.
    environment
        The Python environment that contains the model's package: its folder, or its interpreter.
    device
        "cpu", "cuda" or "auto".
    server
        The address of a server, such as ``https://host:1527``.
    api_key
        The API key of the server; "" for none. It is never read from an environment variable.
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
    """Information on a connected engine.

    Parameters
    ----------
    name
        Software with its version, such as ``nnInteractive 2.6.0``.
    model
        ``sha256:`` followed by the digest of the weights, or the address of the server.
    licence
        The licence of the weights, or `UNKNOWN_LICENCE` if the model does not state it.
    abilities
        The prompts that the engine accepts.
    has_undo
        Whether the engine can undo its last prompt.
    """

    name: str
    model: str
    licence: str
    abilities: Abilities
    has_undo: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A box in the image, and a boolean mask of the voxels in the box."""

    box: Box
    mask: NDArray[np.bool_]


class PromptEngine(Protocol):
    """A prompt model; every method except `close` may take long and reports progress.

    Methods raise `EngineLostError` if the engine has ended, and `ModelError` or `CaseError` for
    other failures.
    """

    @property
    def is_open(self) -> bool:
        """Return whether the engine is connected and has an image."""

    def connect(self) -> EngineInfo:
        """Load the model, or claim a session on a server; no image is sent yet."""

    def set_image(self, image: NDArray[Any], spacing_mm: Sequence[float]) -> None:
        """Send an image ``(z, y, x)`` and its spacing, and start with an empty mask."""

    def start_from(self, region: Region) -> None:
        """Forget all prompts and start from a mask."""

    def prompt(self, placed: PlacedPrompt) -> Region:
        """Return the box that a prompt changed, with the new mask; empty if unchanged."""

    def undo(self, checksum: int) -> bool:
        """Undo the last prompt; return whether the mask then has the CRC-32 `checksum`."""

    def close(self) -> None:
        """Stop the engine; `connect` can start it again."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """The entry of an engine in `PROMPT_ENGINES`.

    Parameters
    ----------
    name
        The engine's name, such as ``local``.
    text
        A noun phrase that describes the engine.
    make
        Function that returns an engine, or raises `CaseError` if a setting is missing or invalid.
    leaves
        Function that returns a sentence on the data that leave this computer with given settings,
        or "" if none do.
    """

    name: str
    text: str
    make: Callable[[EngineSettings], PromptEngine]
    leaves: Callable[[EngineSettings], str]


def engines_registry(*built_in: EngineSpec) -> Registry[EngineSpec]:
    """Make the registry of engines; other packages can add engines through an entry point."""
    return Registry(
        "napari_mamamia.prompt_engines", EngineSpec, {spec.name: spec for spec in built_in}
    )
