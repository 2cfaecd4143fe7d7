"""Provenance of a mask: its maker, inputs, software version and settings."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeAlias

from napari_mamamia.core.version import __version__

Setting: TypeAlias = bool | int | float | str | None

MODEL_SHA256: Final = "model_sha256"
"""Parameter of a mask: the digest of a model that has no weights, see `hash_model`."""
MODEL_DIGESTS: Final = ("submission_sha256", "weights_sha256", MODEL_SHA256)
"""Parameters of a mask that identify the model that made it, whatever the case."""


class Maker(StrEnum):
    """The kind of source that made a mask."""

    REFERENCE = "reference"
    MODEL = "model"
    READER = "reader"
    PHANTOM = "phantom"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file of a mask, by name (never a full path) and SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of one mask.

    `name` is that of the model or the reader; `parameters` are (name, value) pairs in the order
    shown; `seconds` is the computing or editing time (None if not measured); `device` names the
    computing device, such as "cpu" ("" if unknown); `peak_memory_bytes` is the highest resident
    memory that the process had reached when it made the mask, including its other data (None if not
    measured); `started_from` names the mask that a reader edited ("" for none); `created` is an ISO
    8601 time in UTC; `note` is shown to the user unchanged, such as "kinetic threshold, not a
    trained model".
    """

    case_id: str
    maker: Maker
    name: str
    inputs: tuple[InputFile, ...] = ()
    parameters: tuple[tuple[str, Setting], ...] = ()
    seconds: float | None = None
    started_from: str = ""
    note: str = ""
    # A lambda, because the functions are defined below the class.
    created: str = field(default_factory=lambda: now_utc())
    software: str = field(default_factory=lambda: software_version())
    device: str = ""
    peak_memory_bytes: int | None = None


def now_utc() -> str:
    """Return the present time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def software_version() -> str:
    """Return this software's name and version, as provenance and reports carry it."""
    return f"napari-mamamia {__version__}"


def hash_model(*settings: object) -> str:
    """Return the SHA-256 of the settings of a model without weights and this software's version."""
    content = json.dumps([software_version(), *settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
