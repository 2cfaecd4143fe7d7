"""Records of the choices on page Export."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.services.export.plan import ExportSettings


@dataclass(frozen=True, slots=True)
class MaskSet:
    """A folder of masks that can be exported: its name and number of cases."""

    title: str
    folder: Path
    n_cases: int
    default_out: Path


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The choices of the page; the settings name no masks yet."""

    sets: tuple[MaskSet, ...]
    out: Path
    replace: bool
    settings: ExportSettings
