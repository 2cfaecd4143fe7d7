"""Colours of kinetics, the same on the image, in legends and in curves.

Persistent is blue, plateau green, washout red, as in clinical use (Partridge 2014, figure 2). Each
curve type also has a letter for colour-blind readers. The SER colours of FTV are defined by UCSF.
"""

from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.texts import tr
from napari_mamamia.kinetics.map_kinds import MAPS, Colours

TYPE_COLOURS: Final = {
    1: ("P", "persistent", "#3B8BEB"),
    2: ("L", "plateau", "#00B050"),
    3: ("W", "washout", "#E8352B"),
}
"""Letter, name and colour of each value in the curve-type map."""

SER_COLOURS: Final = {
    1: (tr("SER 0–0.9"), "blue", "#2F6BFF"),
    2: ("0.9–1.0", "purple", "#A050D0"),
    3: ("1.0–1.3", "green", "#00B050"),
    4: ("1.3–1.75", "red", "#E8352B"),
    5: ("1.75–3", "yellow", "#F0E442"),
    6: ("other", "white", "#FFFFFF"),
}
"""SER range, UCSF's colour name and colour of each value in the FTV map."""

CURSOR_COLOUR: Final = "#CC79A7"
MASK_COLOUR: Final = "#56B4E9"
PIN_COLOURS: Final = ("#E69F00", "#009E73", "#D55E00", "#0072B2", "#F0E442", "#999999")
"""Okabe-Ito colours of pinned regions.

The pointer's curve is purple and the mask's curve sky blue, so these two colours are not used.
"""


@dataclass(frozen=True, slots=True)
class Ramp:
    """Evenly spaced colours from the lowest to the highest value, as RGBA from 0 to 1."""

    name: str
    colours: tuple[tuple[float, float, float, float], ...]


_HEAT: Final = ("#000004", "#57106E", "#BC3754", "#F98E09", "#FCFFA4")
"""Five steps of matplotlib's inferno colour map, whose lightness increases monotonically."""

_DIVERGING: Final = ("#2F6BFF", "#9CC2FF", "#F2F2F2", "#F5A38A", "#E8352B")
_FALLING: Final = ("#E8352B", "#F5A38A", "#F2F2F2")

_RAMPS: Final = {
    Colours.HEAT: ("mamamia_heat", _HEAT),
    Colours.COOLING: ("mamamia_cooling", _HEAT[::-1]),
    Colours.DIVERGING: ("mamamia_ser", _DIVERGING),
    Colours.FALLING: ("mamamia_wash_out", _FALLING),
}


def ramp_of(kind: str) -> Ramp:
    """Return the colours of a map from its entry in `MAPS`."""
    name, steps = _RAMPS[MAPS[kind].colours]
    return Ramp(name, tuple(map(_parse_colour, steps)))


def _parse_colour(colour: str) -> tuple[float, float, float, float]:
    red, green, blue = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    return (red, green, blue, 1.0)
