"""Apply a remedy that the user chose to the settings of an import."""

from dataclasses import replace
from typing import Final

from napari_mamamia.core.choices import Clock, Sides
from napari_mamamia.core.errors import Remedy
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.services.dicom.finding import ImportSettings

SETTINGS: Final = frozenset({"use", "leave_out", "clock", "sides", "allow_thin"})
"""The options of remedies that `apply_remedy` knows."""


def apply_remedy(settings: ImportSettings, remedy: Remedy) -> ImportSettings:
    """Return the settings of an import changed by a remedy, whose option is in `SETTINGS`."""
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
    raise ValueError(f"expected one of the options {sorted(SETTINGS)}, got {remedy.option!r}")
