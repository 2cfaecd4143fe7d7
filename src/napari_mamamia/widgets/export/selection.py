"""Records of the choices on the Export page."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.texts import tr
from napari_mamamia.services.export.plan import ExportSettings


@dataclass(frozen=True, slots=True)
class MaskSet:
    """A folder of masks for export, with its name, number of cases and number of accepted masks."""

    title: str
    folder: Path
    n_cases: int
    default_out: Path
    n_accepted: int
    is_prediction: bool = False

    @property
    def text(self) -> str:
        """The name with the number of cases and the number of cases that are not accepted."""
        if not self.n_accepted:
            return tr("{title} ({n}, none accepted)", title=self.title, n=self.n_cases)
        left = self.n_cases - self.n_accepted
        more = tr(", {left} not accepted", left=left) if left else ""
        return f"{self.title} ({self.n_cases}{more})"


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The choices on the page as export settings, which do not include the masks yet."""

    sets: tuple[MaskSet, ...]
    out: Path
    replace: bool
    settings: ExportSettings
