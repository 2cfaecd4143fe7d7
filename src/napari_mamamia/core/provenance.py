"""Who or what made a mask, from which input, with which version and settings."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

Setting: TypeAlias = bool | int | float | str | None


class Maker(StrEnum):
    """What kind of source made a mask."""

    REFERENCE = "reference"
    MODEL = "model"
    READER = "reader"
    PHANTOM = "phantom"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that a mask was made from, by name (never a full path) and SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The history of one mask.

    `name` is the model's or the reader's; `parameters` are (name, value) pairs in the order shown;
    `seconds` is the computing or editing time (None if not measured); `device` says what computed,
    such as "cpu" ("" unknown); `peak_memory_bytes` is the highest resident memory that the process
    which made the mask ever had up to then, whatever else it held (None if not measured);
    `started_from` names the mask
    that a reader edited ("" for none); `created` is an ISO 8601 time in UTC; `note` is shown to the
    user as it is, such as "kinetic threshold, not a trained model".
    """

    case_id: str
    maker: Maker
    name: str
    inputs: tuple[InputFile, ...] = ()
    parameters: tuple[tuple[str, Setting], ...] = ()
    seconds: float | None = None
    started_from: str = ""
    note: str = ""
    # By a lambda because these functions stand below, and are not there yet when the class is made.
    created: str = field(default_factory=lambda: now_utc())
    software: str = field(default_factory=lambda: software_version())
    device: str = ""
    peak_memory_bytes: int | None = None


def now_utc() -> str:
    """Return the present time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def software_version() -> str:
    """Return this software's name and version, as provenance and reports carry it."""
    from importlib.metadata import version  # 15 ms of every command's start

    return f"napari-mamamia {version('napari-mamamia')}"
