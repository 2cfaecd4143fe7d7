"""Provenance of a mask: who or what made it, from which inputs, and with which settings."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeAlias

from napari_mamamia.core.version import __version__

Setting: TypeAlias = bool | int | float | str | None

MODEL_SHA256: Final = "model_sha256"
"""Name of the mask parameter with the digest of a model that has no weights; see `hash_model`."""
MODEL_DIGESTS: Final = ("submission_sha256", "weights_sha256", MODEL_SHA256)
"""Names of the mask parameters that identify the model, independent of the case."""


class Maker(StrEnum):
    """The kind of source that made a mask, such as a model or a reader."""

    REFERENCE = "reference"
    MODEL = "model"
    READER = "reader"
    PHANTOM = "phantom"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file of a mask: its name (never a full path) and SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of one mask.

    Parameters
    ----------
    name
        The name of the model or reader.
    parameters
        Pairs of name and value, in display order.
    seconds
        The computing or editing time; None if it was not measured.
    device
        The computing device, such as "cpu"; "" if unknown.
    peak_memory_bytes
        The peak resident memory of the process up to the time when it made the mask, including its
        other data; None if it was not measured.
    started_from
        The name of the mask that a reader edited; "" for none.
    created
        An ISO 8601 time in UTC.
    note
        A remark that is shown to the user unchanged, such as "kinetic threshold, not a trained
        model".
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
    """Return the current time in UTC in ISO 8601 format, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def software_version() -> str:
    """Return this software's name and version, as written in provenance and reports."""
    return f"napari-mamamia {__version__}"


def hash_model(*settings: object) -> str:
    """Return the SHA-256 of the settings of a model without weights and this software's version."""
    content = json.dumps([software_version(), *settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
