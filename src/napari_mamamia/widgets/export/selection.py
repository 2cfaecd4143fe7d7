"""Records of the choices on the Export page."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.services.export.plan import ExportSettings


@dataclass(frozen=True, slots=True)
class MaskSet:
    """A folder of masks for export: its name and number of cases."""

    title: str
    folder: Path
    n_cases: int
    default_out: Path


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The choices on the page; the settings do not include the masks yet."""

    sets: tuple[MaskSet, ...]
    out: Path
    replace: bool
    settings: ExportSettings
