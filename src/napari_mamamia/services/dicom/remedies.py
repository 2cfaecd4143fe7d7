"""Apply a remedy that the user chose to the import settings."""

from dataclasses import replace
from typing import Final

from napari_mamamia.core.choices import Clock, Sides
from napari_mamamia.core.errors import Remedy
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.services.dicom.finding import ImportSettings

SETTINGS: Final = frozenset({"use", "leave_out", "clock", "sides", "allow_thin"})
"""The remedy options that `apply_remedy` supports."""


def apply_remedy(settings: ImportSettings, remedy: Remedy) -> ImportSettings:
    """Return import settings changed by a remedy, whose option must be in `SETTINGS`."""
    match remedy.option:
        case "use":
            return replace(settings, use=read_selectors(remedy.values))
        case "leave_out":
            groups = read_selectors(remedy.values)
            return replace(settings, leave_out=(*settings.leave_out, *groups))
        case "clock":
            return replace(settings, clock=Clock(remedy.values[0]))
        case "sides":
            return replace(settings, sides=Sides(remedy.values[0]))
        case "allow_thin":
            return replace(settings, allow_thin=True)
    raise ValueError(
        f"expected the option to be one of {sorted(SETTINGS)}, but got {remedy.option!r}"
    )
