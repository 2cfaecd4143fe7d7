"""What the page Export asks for, as records."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.services.export.plan import ExportSettings


@dataclass(frozen=True, slots=True)
class MaskSet:
    """A folder of masks that can be exported: what it is called, how many cases it holds."""

    title: str
    folder: Path
    n_cases: int
    default_out: Path


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What the page asks for; the settings name no masks yet."""

    sets: tuple[MaskSet, ...]
    out: Path
    replace: bool
    settings: ExportSettings
